//! The names of paths and schemas in the document. In Rust, a type's name is short because its module gives the
//! context. The document has no modules, so names there must be complete.
//!
//! To give a schema another name than its type, add a line in [`SCHEMAS`]. For a new list in a path, add a line in
//! [`PARAMETERS`].

use std::collections::BTreeMap;

use serde_json::Value;

use super::document::{operations, schemas, walk};

/// Types, and their names in the document.
const SCHEMAS: &[(&str, &str)] = &[
    ("Check", "ModelCheck"),
    ("CheckName", "ModelCheckName"),
    ("OutputLimit", "ModelOutputLimit"),
    ("Parameters", "ModelParameters"),
    ("Supports", "ModelSupports"),
    ("TestView", "ModelTestResult"),
    ("Timeouts", "ModelTimeouts"),
    ("ModelView", "Model"),
    ("ActInput", "PlayerTextInput"),
    ("ActView", "PlayerTextResult"),
    ("ActionInput", "EncounterAction"),
    ("ActionTold", "EncounterActionResult"),
    ("ActorInput", "ToolActor"),
    ("ActorKind", "ToolActorKind"),
    ("AnalyzeRequest", "DiceAnalysisInput"),
    ("Aspect", "OwnerAspect"),
    ("Author", "MessageAuthor"),
    ("Backlink", "LoreBacklink"),
    ("BroadcastView", "Broadcast"),
    ("BulkEntry", "LoreBulkEntry"),
    ("BulkInput", "LoreBulkInput"),
    ("BulkReport", "LoreBulkReport"),
    ("CallError", "ToolCallError"),
    ("CallStatus", "ToolCallStatus"),
    ("CampaignSettings", "CampaignSettingsInput"),
    ("Change", "JournalChange"),
    ("Changes", "JournalPage"),
    ("CommandView", "CommandResult"),
    ("CommitError", "EncounterCommitError"),
    ("CommitInput", "EncounterCommitInput"),
    ("CommitTold", "EncounterCommitResult"),
    ("Committed", "EncounterCommitted"),
    ("ConditionDetailInput", "EncounterConditionDetail"),
    ("ConditionInput", "EncounterCondition"),
    ("ContextInput", "EncounterActionContext"),
    ("CopyInput", "LoreCopyInput"),
    ("Concerned", "RehearsedConcern"),
    ("Counts", "ImportCounts"),
    ("CreateInput", "EncounterCreateInput"),
    ("Delta", "SessionChanges"),
    ("DeltaView", "SessionDelta"),
    ("Details", "SessionDeltaDetails"),
    ("Die", "RolledDie"),
    ("Dimensions", "SceneDimensions"),
    ("Duplicates", "LoreDuplicates"),
    ("Encounter", "EncounterRecord"),
    ("EncounterInput", "EncounterRecordInput"),
    ("EncounterView", "Encounter"),
    ("EndInput", "EncounterEndInput"),
    ("EndTold", "EncounterEndResult"),
    ("Equals", "LoreDuplicate"),
    ("EventInput", "SessionEvent"),
    ("EventResult", "SessionEventResult"),
    ("EventsInput", "SessionEventsInput"),
    ("EventsTaken", "SessionEventsResult"),
    ("Features", "TenantFeatures"),
    ("FieldReport", "ImportField"),
    ("ForkInput", "CampaignForkInput"),
    ("GmPromptInput", "SessionPromptInput"),
    ("GmTurnInput", "SessionTurnInput"),
    ("HazardInput", "TerrainHazardInput"),
    ("Hearer", "BroadcastHearer"),
    ("HolderView", "MemoryHolder"),
    ("Imported", "ImportedRow"),
    ("Influence", "OwnerInfluence"),
    ("KeyChange", "ApiKeyChange"),
    ("KeyInput", "ApiKeyInput"),
    ("KeyView", "ApiKey"),
    ("Kind", "ErasureKind"),
    ("Light", "WorldLight"),
    ("Link", "LoreLink"),
    ("Links", "LoreLinks"),
    ("Logic", "LoreLogic"),
    ("Activation", "LoreActivation"),
    ("Lore", "LoreEntry"),
    ("LoreInput", "LoreEntryInput"),
    ("MemoryView", "Memory"),
    ("Mechanics", "TurnMechanics"),
    ("MendInput", "LoreMendInput"),
    ("MoveInput", "MemoryMoveInput"),
    ("Note", "WorldNote"),
    ("OptionView", "PlannerOption"),
    ("Outcome", "ImportFieldOutcome"),
    ("OwnerView", "Owner"),
    ("Pack", "CompendiumPack"),
    ("Part", "LorePart"),
    ("PartInput", "DamagePartInput"),
    ("ParticipantInput", "EncounterParticipantInput"),
    ("PlanView", "PlannerPlan"),
    ("Position", "ScenePosition"),
    ("PositionInput", "SquareInput"),
    ("Preview", "PromptPreview"),
    ("Progress", "ErasureProgress"),
    ("Range", "WeaponRange"),
    ("Replace", "LoreReplacement"),
    ("Report", "ImportReport"),
    ("ResetView", "UserReset"),
    ("Resolution", "ActionResolution"),
    ("ResolveInput", "ActionResolveInput"),
    ("ReactionView", "Reaction"),
    ("Rehearsal", "ActionRehearsal"),
    ("RehearsalInput", "ActionRehearsalInput"),
    ("Replies", "ReplyList"),
    ("ReplyView", "Reply"),
    ("Reverting", "TurnReverting"),
    ("Role", "UserRole"),
    ("RotateRequest", "DiceSeedRotateInput"),
    ("Rotated", "DiceSeedRotation"),
    ("Scope", "ApiScope"),
    ("ScopeTotal", "LoreScopeTotal"),
    ("SectionText", "PromptSectionText"),
    ("SectionView", "PromptSection"),
    ("SeedView", "DiceSeed"),
    ("SessionOpen", "SessionCreateInput"),
    ("Settings", "TenantSettings"),
    ("SettingsInput", "TenantSettingsInput"),
    ("SkipReason", "EncounterSkipReason"),
    ("Skipped", "EncounterSkipped"),
    ("Standing", "Significance"),
    ("Started", "EncounterStart"),
    ("State", "SessionState"),
    ("Statistics", "DiceStatistics"),
    ("Stats", "NpcStats"),
    ("Status", "TurnStatus"),
    ("Stretch", "JournalStretch"),
    ("TagChange", "LoreTagChange"),
    ("PriorityChange", "LorePriorityChange"),
    ("TenantView", "Tenant"),
    ("TermFlavor", "RolledTerm"),
    ("Timings", "TurnTimings"),
    ("Token", "WorldToken"),
    ("TokenRequest", "AccessTokenInput"),
    ("TokenView", "AccessToken"),
    ("Totals", "LoreTotals"),
    ("Triggered", "TriggeredReactions"),
    ("TurnView", "Turn"),
    ("Type", "MessageType"),
    ("Undone", "LoreBulkUndone"),
    ("Usage", "TokenUsage"),
    ("UserView", "User"),
    ("Verified", "DiceVerification"),
    ("VerifyInput", "DiceVerifyInput"),
];

/// The name of a type's schema in the document. For example `Items_KeyView` becomes `ApiKeyPage`, `NpcInput.Patch`
/// becomes `NpcPatch`, and `Arguments.sheet.create` becomes `SheetCreateArguments`.
#[must_use]
pub fn of_schema(name: &str) -> String {
    let plain = |name: &str| SCHEMAS.iter().find(|(rust, _)| *rust == name).map_or(name, |(_, ours)| ours).to_owned();
    if let Some(item) = name.strip_prefix("Items_") {
        return plain(item) + "Page";
    }
    if let Some(whole) = name.strip_suffix(".Patch") {
        let whole = plain(whole);
        return whole.strip_suffix("Input").or(whole.strip_suffix("Change")).unwrap_or(&whole).to_owned() + "Patch";
    }
    match name.strip_prefix("Difference_") {
        Some("Option_String") => return "TextDifference".to_owned(),
        Some(of) if of.starts_with("Vec_") => return plain(of.trim_start_matches("Vec_")) + "sDifference",
        Some(of) => return plain(of) + "Difference",
        None => {}
    }
    match name.strip_prefix("Arguments.") {
        Some(command) => camel(command) + "Arguments",
        None => plain(name),
    }
}

/// Converts names to camel case: `sheet.create` becomes `SheetCreate`, and `turn_advanced` becomes `TurnAdvanced`.
#[must_use]
pub fn camel(name: &str) -> String {
    let words = name.split(|c: char| !c.is_alphanumeric());
    let upper = |word: &str| {
        let mut letters = word.chars();
        letters.next().map(|first| first.to_ascii_uppercase().to_string() + letters.as_str()).unwrap_or_default()
    };
    words.map(upper).collect()
}

/// The name of a path parameter, by the path segment before it.
const PARAMETERS: &[(&str, &str)] = &[
    ("api-keys", "api_key"),
    ("broadcasts", "broadcast"),
    ("bulk", "bulk_edit"),
    ("characters", "character"),
    ("commands", "command"),
    ("encounters", "encounter"),
    ("erasures", "erasure"),
    ("lore", "lore_entry"),
    ("memories", "memory"),
    ("messages", "message"),
    ("models", "model"),
    ("npcs", "npc"),
    ("owners", "owner"),
    ("player-links", "player_link"),
    ("players", "character"),
    ("reactions", "reaction"),
    ("replies", "reply"),
    ("scenes", "scene"),
    ("sessions", "session"),
    ("srd", "table"),
    ("tools", "tool"),
    ("turns", "turn"),
    ("users", "user"),
];

/// A route's path in the document: `/v1/campaigns/{c}/npcs/{x}` becomes `/v1/campaigns/{campaign}/npcs/{npc}`.
#[must_use]
pub fn of_path(path: &str) -> String {
    let mut before = "";
    let mut parts = Vec::new();
    for part in path.split('/') {
        parts.push(match part {
            "{c}" => "{campaign}".to_owned(),
            "{x}" => format!("{{{}}}", of_hole(before)),
            part => part.to_owned(),
        });
        before = part;
    }
    parts.join("/")
}

fn of_hole(before: &str) -> &'static str {
    PARAMETERS.iter().find(|(list, _)| *list == before).map_or("x", |(_, name)| name)
}

/// Renames paths, their parameters, and schemas.
pub fn give(document: &mut Value) {
    operations(document, |path, _, operation| {
        let before = path.split("/{x}").next().and_then(|list| list.rsplit('/').next()).unwrap_or_default();
        for parameter in operation.get_mut("parameters").and_then(Value::as_array_mut).into_iter().flatten() {
            match (parameter["in"] == "path").then(|| parameter["name"].as_str()).flatten() {
                Some("c") => parameter["name"] = "campaign".into(),
                Some("x") => parameter["name"] = of_hole(before).into(),
                _ => {}
            }
        }
    });
    if let Some(paths) = document["paths"].as_object_mut() {
        *paths = std::mem::take(paths).into_iter().map(|(path, item)| (of_path(&path), item)).collect();
    }
    let Some(known) = schemas(document) else { return };
    let names: BTreeMap<String, String> = known.keys().map(|name| (name.clone(), of_schema(name))).collect();
    *known = std::mem::take(known).into_iter().map(|(name, schema)| (of_schema(&name), schema)).collect();
    let new_place = |place: &str| {
        let (before, name) = place.rsplit_once('/')?;
        Some(format!("{before}/{}", names.get(name)?))
    };
    walk(document, &mut |members| {
        if let Some(place) = members.get_mut("$ref")
            && let Some(renamed) = place.as_str().and_then(new_place)
        {
            *place = renamed.into();
        }
    });
}
