//! Words that say little about what a text is about, in the languages that most players write. They count less in questions. Memories
//! keep all their words.
//!
//! To add a language, add a list: lower case, without accents, without apostrophes.

use std::{collections::HashSet, sync::LazyLock};

const ENGLISH: &str = "a about above after again against all am an and any are arent as at be because been before being below between both but \
    by can cannot cant could couldnt did didnt do does doesnt doing dont down during each few for from further get go got had hadnt has hasnt \
    have havent having he her here hers herself hey him himself his how i id if ill im in into is isnt it its itself ive just know let lets like \
    me more most my myself no nor not now of off oh ok on once one only or other our ours ourselves out over own please really same say says \
    she should so some still such tell than that thats the their theirs them themselves then there these they theyre this those through to \
    too under until up us very was wasnt we well were werent what when where which while who whom why will with wont would yeah yes you youd \
    youll your youre yours yourself youve";
const GERMAN: &str = "aber alle allem allen aller alles als also am an ander andere anderen auch auf aus bei beim bin bis bist bitte da damit dann das \
    dass dein deine deinem deinen deiner dem den denn der des dich die dies diese diesem diesen dieser dieses dir doch dort du durch ein eine \
    einem einen einer eines einig einige er es etwas euch euer eure fur gegen gewesen hab habe haben hast hat hatte hatten hier hin hinter ich \
    ihm ihn ihnen ihr ihre ihrem ihren ihrer im in indem ins ist ja jede jedem jeden jeder jedes jene jenem jetzt kann kannst kein keine \
    keinem keinen keiner konnen konnte mach machen mal man manche mein meine meinem meinen meiner mich mir mit muss musste nach nein nicht \
    nichts noch nun nur ob oder ohne sag sehr sein seine seinem seinen seiner selbst sich sie sind so solche soll sollte sondern sonst uber um \
    und uns unser unsere unter viel vom von vor wahrend war waren warst was weg weil weiter weiss weisst welche wenn wer werde werden wie \
    wieder will willst wir wird wirst wo wollen wollte wurde wurden zu zum zur zwar zwischen";
const FRENCH: &str = "a ai aie alors apres as au aucun aussi autre aux avait avant avec avez avoir avons c ca car ce cela celle celui ces cest cet cette ceux \
    chez comme comment d dans de des deux dit donc dont du elle elles en encore entre es est et etaient etait etant ete etes etre eu fait faire \
    fois il ils j je jai juste l la le les leur leurs lui m ma mais me meme mes moi mon n ne ni non nos notre nous on ont ou oui par parce pas \
    peu peut plus pour pourquoi qu quand que quel quelle quelles quels qui quoi s sa sans se sera ses si son sont sous suis sur t ta te tes \
    toi ton tous tout toute toutes tres tu un une va vers voici voila vos votre vous y";
const SPANISH: &str = "a al algo algunos ante antes aqui asi aun como con contra cual cuando de del desde donde dos durante e el ella ellas ellos en entre \
    era eran eres es esa esas ese eso esos esta estaba estado estan estar estas este esto estos estoy fue fueron ha habia han has hasta hay he la \
    las le les lo los mas me mi mis mucho muy nada ni no nos nosotros nuestra nuestro o os otra otro otros para pero poco por porque pues que \
    quien quienes se sea ser si sido sin sobre solo son soy su sus tambien tan tanto te tengo ti tiene tienen todo todos tu tus un una uno unos \
    usted y ya yo";
const ITALIAN: &str = "a ad adesso agli ai al alla alle allo anche ancora avere aveva avevo c che chi ci cio come con contro cosa cosi cui da dal dalla dalle \
    dallo dei degli del della delle dello dentro di dove e ecco ed era erano essere fa fare gia gli ha hai hanno ho i il in io l la le lei li lo \
    loro lui ma me mi mia mie miei mio molto ne negli nei nel nella nelle nello no noi non nostra nostro o per perche piu poi prima qua quale \
    quando quanto quella quelle quelli quello questa queste questi questo qui se sei senza si sia siamo sono sopra sotto sta stato su sua sue sugli \
    sui sul sulla suo suoi te ti tra tu tua tue tuo tuoi tutti tutto un una uno vi voi vostra vostro";
const PORTUGUESE: &str = "a agora ainda ao aos aquela aquele aquilo as assim ate cada com como da das de dela dele deles depois do dos e ela elas ele eles em entao \
    entre era eram essa esse esta estao estar estava este estes estou eu faz foi foram ha isso isto ja la lhe lhes mais mas me mesmo meu meus minha \
    minhas muito na nao nas nem no nos nossa nosso num numa o os ou outra outro para pela pelas pelo pelos por porque pra quais qual quando que \
    quem sao se seja sem ser seu seus sim so sobre sou sua suas tambem te tem tenho ter teu teve tinha toda todo todos tu tua tudo um uma voce \
    voces";
const DUTCH: &str = "aan al alles als altijd andere ben bent bij daar dan dat de der deze die dit doch doen door dus een eens en er ge geen geweest haar had \
    heb hebben hebt heeft hem het hier hij hoe hun iemand iets ik in is ja je jij jou jouw jullie kan kon kunnen maar me meer men met mij mijn moet \
    na naar niet niets nog nu of om omdat onder ons ook op over reeds te tegen toch toen tot u uit uw van veel voor want waren was wat we wel werd \
    wezen wie wij wil worden wordt zal ze zei zelf zich zij zijn zo zonder zou";
const POLISH: &str = "a aby albo ale ani az bardzo bez bo by byc byl byla bylo byly bys co czy dla do dlaczego gdy gdzie go i ich ile im inne ja jak jaka jaki \
    jakie jako je jednak jego jej jest jestem jeszcze jesli juz kiedy kto ktora ktore ktory ktorzy lub ma mam masz mi mnie moj moja moje moze mu my na \
    nad nam nas nasz nic nich nie niech nim no o od on ona one oni ono oraz po pod ponad poza przed przez przy sa sam sie skad so soba swoj ta tak \
    takze tam te tego tej temu ten teraz tez to tobie toba tu tutaj twoj twoja ty tych tylko tym u w wam was wasz we wiec wszystko wy z za ze zeby";
const RUSSIAN: &str = "а без более бы был была были было быть в вам вас весь во вот все всё всего всех вы где да даже для до его ее её ей если есть еще ещё же \
    за здесь и из или им их к как какая какой когда кто ли либо меня мне много может мой моя мы на надо нам нас наш не него нее неё ней нет ни них но \
    ну о об один он она они оно от очень по под после потому почему при про раз с сам свой себе себя сейчас со так такой там тебе тебя тем теперь то \
    того тоже только том тот ты у уже хоть чего чей чем что чтобы эта эти это этого этой этот я";

static ALL: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    [ENGLISH, GERMAN, FRENCH, SPANISH, ITALIAN, PORTUGUESE, DUTCH, POLISH, RUSSIAN]
        .into_iter()
        .flat_map(str::split_whitespace)
        .collect()
});

/// Words that deny something.
const NEGATIONS: &str = "no not never none nobody nothing neither nor cannot cant dont doesnt didnt isnt wasnt arent werent wont wouldnt couldnt shouldnt \
    hasnt havent hadnt mustnt neednt shant aint without nicht nie niemals niemand nichts kein keine keinem keinen keiner keines ohne ne pas jamais rien personne sans \
    nunca nada nadie sin non mai niente nessuno senza nao nem sem niet nooit niemand niets geen zonder nie nigdy nic bez не нет ни никогда \
    никто ничего";

/// Letters that deny something in scripts without spaces.
const DENYING_LETTERS: [&str; 18] = [
    "ない",
    "なか",
    "なく",
    "ません",
    "ずに",
    "不",
    "没",
    "沒",
    "無",
    "无",
    "未",
    "别",
    "別",
    "안",
    "못",
    "않",
    "없",
    "ไม่",
];

static ALL_NEGATIONS: LazyLock<HashSet<&str>> = LazyLock::new(|| NEGATIONS.split_whitespace().collect());

/// Whether a word, folded and without accents, is a stop word.
pub fn is_stop_word(plain: &str) -> bool {
    ALL.contains(plain)
}

/// Whether a word, folded and without accents, denies something. In a script without spaces, the word is a whole run of letters.
pub fn denies(plain: &str, is_dense: bool) -> bool {
    if is_dense {
        return DENYING_LETTERS.iter().any(|letters| plain.contains(letters));
    }
    ALL_NEGATIONS.contains(plain)
}
