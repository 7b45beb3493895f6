"""Words of English that the rules go by, sorted by what they do in a sentence. Lists of language, not of topics."""

from __future__ import annotations

from typing import Literal, NamedTuple

Form = Literal["base", "third", "past", "participle", "gerund"]


class Verb(NamedTuple):
    """A form of a verb: what it is a form of, and which one."""

    lemma: str
    forms: frozenset[Form]


REGULAR = (
    "abandon accept add adopt aim allow answer appoint arrive attend avoid back ban belong block bump call cancel cause change check choose"
    " close collect combine commit contain continue cook cost cover cycle damage deal decide delay deliver demand depend deploy design"
    " despise detest develop die disable discontinue dislike divide double downgrade drop earn edit employ enable end enjoy enter evaluate"
    " exhaust expect expire explain extend fail favour favor file fill finish fix flood follow force halve hand handle happen harvest hate"
    " hire host identify include increase inherit install introduce invest invite join jump keep label land last launch learn license lift"
    " like limit list listen live locate look love lower main maintain manage mark marry measure merge migrate mind miss move name need"
    " number observe offer open operate order overrule owe own pack park pass pause pay perform pick place plan plant play postpone prefer"
    " produce promise promote publish purchase quit raise reach read receive recommend recover reduce refuse rehearse reject relocate rely"
    " remain remove rename renew rent replace report require reside resign rest restore retire return reverse revert ride roll rotate"
    " sacrifice save scrap seem serve settle share ship sign sit skip smoke soak speak spend stand start station stay stop store study"
    " suffer suit support switch talk target taste tend terminate test tour track trade train transfer travel treat trust try turn upgrade"
    " use visit volunteer vote wait walk want water weigh welcome work worry yield reschedule resume stall break clash swell host migrate"
    " rehearse supply house teach coach chair supervise captain head direct drive bank graze milk brew bake roast cater graduate enrol"
    " enroll subscribe commute meditate refinance sow plough lend borrow owe crash leak melt burn divorce adore object ditch slip"
    " shift push climb swap shrink convert succeed delay reconsider shelve adjourn defer rebook reassign redirect adjust amend reset"
    " carry mistake swear plead retire diagnose row"
).split()

IRREGULAR = """
be am,are,is was,were been being
become - became become becoming
begin - began begun beginning
break - broke broken breaking
bring - brought brought bringing
build - built built building
burn - burned,burnt burned,burnt burning
buy - bought bought buying
catch - caught caught catching
choose - chose chosen choosing
come - came come coming
cost - cost cost costing
cut - cut cut cutting
deal - dealt dealt dealing
do does did done doing
drink - drank drunk drinking
drive - drove driven driving
eat - ate eaten eating
feed - fed fed feeding
feel - felt felt feeling
find - found found finding
fly - flew flown flying
forget - forgot forgotten forgetting
get - got got,gotten getting
fall - fell fallen falling
rise - rose risen rising
shrink - shrank shrunk shrinking
give - gave given giving
go goes went gone going
grow - grew grown growing
have has had had having
hear - heard heard hearing
hold - held held holding
hurt - hurt hurt hurting
keep - kept kept keeping
know - knew known knowing
lead - led led leading
learn - learned,learnt learned,learnt learning
leave - left left leaving
lend - lent lent lending
lie - lay lain lying
lose - lost lost losing
make - made made making
mean - meant meant meaning
meet - met met meeting
pay - paid paid paying
put - put put putting
quit - quit quit quitting
read - read read reading
ride - rode ridden riding
run - ran run running
say - said said saying
see - saw seen seeing
sell - sold sold selling
send - sent sent sending
set - set set setting
show - showed shown showing
sing - sang sung singing
sit - sat sat sitting
sleep - slept slept sleeping
sow - sowed sown,sowed sowing
speak - spoke spoken speaking
spend - spent spent spending
stand - stood stood standing
swim - swam swum swimming
swell - swelled swollen swelling
take - took taken taking
teach - taught taught teaching
tear - tore torn tearing
tell - told told telling
think - thought thought thinking
throw - threw thrown throwing
understand - understood understood understanding
wear - wore worn wearing
win - won won winning
write - wrote written writing
"""


def _third(lemma: str) -> str:
    if lemma.endswith(("s", "x", "z", "ch", "sh")):
        return lemma + "es"
    if lemma.endswith("y") and lemma[-2] not in "aeiou":
        return lemma[:-1] + "ies"
    return lemma + "s"


def _past(lemma: str) -> str:
    if lemma.endswith("e"):
        return lemma + "d"
    if lemma.endswith("y") and lemma[-2] not in "aeiou":
        return lemma[:-1] + "ied"
    return _doubled(lemma) + "ed"


def _gerund(lemma: str) -> str:
    return (lemma[:-1] if lemma.endswith("e") and not lemma.endswith("ee") else _doubled(lemma)) + "ing"


def _doubled(lemma: str) -> str:
    """Stop, stopped: the last consonant after one short vowel; of longer words the few that are stressed on the end, and British l."""
    ends = len(lemma) > 2 and lemma[-1] not in "aeiouwxyh" and lemma[-2] in "aeiou" and lemma[-3] not in "aeiou"
    long = sum(c in "aeiou" for c in lemma) > 1
    return (
        lemma + lemma[-1]
        if ends and (not long or lemma in ("commit", "prefer", "transfer", "label", "travel", "cancel", "enrol"))
        else lemma
    )


def _verbs() -> dict[str, Verb]:
    found: dict[str, tuple[str, set[Form]]] = {}

    def note(form: str, lemma: str, name: Form) -> None:
        found.setdefault(form, (lemma, set()))[1].add(name)

    for line in IRREGULAR.strip().splitlines():
        lemma, third, past, participle, gerund = line.split()
        note(lemma, lemma, "base")
        for form in (_third(lemma) if third == "-" else third).split(","):
            note(form, lemma, "third")
        for form in past.split(","):
            note(form, lemma, "past")
        for form in participle.split(","):
            note(form, lemma, "participle")
        note(gerund, lemma, "gerund")
    irregular = {line.split()[0] for line in IRREGULAR.strip().splitlines()}
    for lemma in REGULAR:
        if lemma in irregular:
            continue
        note(lemma, lemma, "base")
        note(_third(lemma), lemma, "third")
        for form in {_past(lemma), lemma + "ed" if lemma.endswith("l") else _past(lemma)}:
            note(form, lemma, "past")
            note(form, lemma, "participle")
        note(_gerund(lemma), lemma, "gerund")
    return {form: Verb(lemma, frozenset(forms)) for form, (lemma, forms) in found.items()}


VERBS = _verbs()

BE = frozenset("is are was were am be been being".split())
HAVE = frozenset("has have had".split())
MODALS = frozenset("will shall would should can could may might must won't can't cannot couldn't wouldn't shouldn't".split())
DO = frozenset("do does did don't doesn't didn't".split())
AUXILIARIES = BE | HAVE | MODALS | DO | frozenset("isn't aren't wasn't weren't hasn't haven't hadn't".split())
NEGATIONS = frozenset(
    "not never no don't doesn't didn't isn't aren't wasn't weren't hasn't haven't hadn't won't can't cannot couldn't nothing nobody neither"
    " nowhere none".split()
)
ADVERBS = frozenset(
    "also always never not still now currently just already recently finally only really usually mostly normally often sometimes once again"
    " even ever actually definitely basically officially permanently temporarily longer no both all have been being got since"
    " then therefore"
    " today yesterday definitively simply soon later rather gradually eventually both mainly".split()
)
FIRST_PERSON = frozenset("i we".split())
NO_NOUNS = frozenset(
    "takes goes gets keeps gives makes owns sells buys pays speaks listens belongs teaches has becomes begins brings comes".split()
)
PRONOUNS = frozenset(
    "i we you he she it they this that these those there who which what everybody everyone somebody someone nobody".split()
)
CONTRACTIONS = {
    "i'm": ("i", "am"),
    "we're": ("we", "are"),
    "you're": ("you", "are"),
    "they're": ("they", "are"),
    "he's": ("he", "is"),
    "she's": ("she", "is"),
    "it's": ("it", "is"),
    "that's": ("that", "is"),
    "there's": ("there", "is"),
    "i've": ("i", "have"),
    "we've": ("we", "have"),
    "they've": ("they", "have"),
    "i'll": ("i", "will"),
    "we'll": ("we", "will"),
    "i'd": ("i", "would"),
    "we'd": ("we", "would"),
}
DETERMINERS = frozenset("the a an my our your his her their its this that these those every each some any no all both another".split())
MINE = frozenset("my our".split())
OTHERS = frozenset("his her their its your".split())
PREPOSITIONS = frozenset(
    "on in at to from with for by of into onto over under behind about near via as after before during until till since through against"
    " between within without towards toward inside outside beside around".split()
)
# Where the thing that fills a slot ends: what follows is another thing, or says when and why.
VALUE_ENDS = frozenset(
    "on in at from with for by into onto under behind near via as after before during until till since because so but which who that when"
    " while where although though whereas if unless due owing thanks instead rather than these now anymore any too also again every each"
    " this last next per though however not via currently today yesterday tomorrow nowadays against without back".split()
)
NEW = frozenset("new next upcoming current old present actual latest own former previous".split())
OTHER = frozenset("other another second third additional further".split())

# Nouns of which a thing has one at a time.
ONE = frozenset(
    "name surname nickname address port version owner deadline number code pin password passphrase price cost fee rent salary wage budget"
    " limit size weight height width length depth temperature age birthday anniversary capital currency url host hostname domain region"
    " timezone zone rate rating score status state color colour capacity quota license licence lead leader manager boss head director ceo"
    " cto cfo president chair chairman captain coach teacher landlord landlady employer maintainer sponsor headquarters extension dose"
    " dosage frequency percentage share ratio id identifier reference key token slot seat room floor date day time start end duration term"
    " expiry husband wife spouse fiance fiancee hometown home birthplace nationality type title rank level balance total sum average"
    " threshold timeout interval format standard default goal target quorum discount plate pulse mileage speed volume contract lead"
    " organiser organizer receptionist supervisor treasurer secretary accountant lawyer dentist doctor gp vet midwife".split()
)
# Nouns of which people have several, so that a second one does not take the first one's place.
MANY = frozenset(
    "brother sister sibling friend colleague neighbour neighbor child son daughter kid cousin aunt uncle nephew niece grandchild"
    " twin pet dog"
    " cat horse client customer allergy language hobby hobbies interest skill favourite favorite project member guest pupil student patient"
    " participant committer contributor teammate classmate roommate flatmate ingredient tool book song film movie game tip example option"
    " goal problem issue thing point question idea trick catch reason answer truth result part rule lesson fact concern worry step task"
    " symptom feature advantage disadvantage difference trouble news way bit word one".split()
)
# Verbs that say little of what is done.
LIGHT = frozenset(
    "use live work play want like need take pay buy sell make get hate prefer have go come give keep put run start stop move change"
    " choose decide say tell know see feel find leave bring send become begin hold stay try happen call enjoy love own eat drink"
    " write read show".split()
)
# Others of whom people tell: what is said of them is not said of the speaker.
PEOPLE = frozenset(
    "mother father mum mom mama dad papa parent brother sister sibling son daughter child kid baby cousin aunt uncle nephew niece"
    " grandmother grandfather grandma grandpa granny grandson granddaughter grandparent grandchild husband wife spouse partner fiance"
    " fiancee fiancé fiancée boyfriend girlfriend ex stepson stepdaughter stepmother stepfather stepbrother stepsister godfather godmother"
    " mother-in-law father-in-law sister-in-law brother-in-law son-in-law daughter-in-law in-law twin friend colleague coworker co-worker"
    " boss neighbour neighbor roommate flatmate housemate classmate teammate landlord landlady tenant lodger nanny au-pair family"
    " guest visitor customer client".split()
)
# What a verb makes of who does it: "Ann leads the choir" says who its leader is.
ROLES = {
    "lead": "lead",
    "own": "owner",
    "manage": "manager",
    "coach": "coach",
    "chair": "chair",
    "supervise": "supervisor",
    "captain": "captain",
    "direct": "director",
    "maintain": "maintainer",
    "head": "head",
}
# Verbs by which a thing has another value than before.
CHANGES = frozenset(
    "move switch migrate change bump upgrade downgrade raise lower increase reduce relocate rename reschedule postpone transfer set bring"
    " replace extend shorten double halve cut convert push shift swap slip put delay drop fall rise climb jump grow shrink promote"
    " adjourn defer rebook reassign redirect adjust amend reset reach".split()
)
# Verbs that tell of something done or decided, worth keeping with no name or number beside them.
DEEDS = frozenset(
    "abandon add adopt ban buy cancel change choose commit decide discontinue ditch divorce downgrade drop employ evaluate file finish fire"
    " give hire install introduce invest join launch leave lose marry merge migrate move overrule postpone purchase quit refinance relocate"
    " remove rename rent replace resign retire return revert scrap sell settle sign sow start stop switch teach transfer upgrade win grow"
    " swim cycle smoke own use deploy host run raise lower burn tear break melt flood crash play milk breed plough soak bank file mediate"
    " eat drink refuse send".split()
)
TASTES = frozenset("like love want prefer hate enjoy dislike adore detest despise favour favor".split())

# Asked of the assistant here and now; with a word like "always" it becomes a standing instruction.
TASKS = frozenset(
    "write explain give show tell suggest list draft make create rewrite translate summarise summarize find help look check review compare"
    " sing read repeat continue describe generate recommend propose calculate compute convert count define design discuss elaborate"
    " evaluate expand fix format guess imagine improve outline paraphrase pick plan print proofread provide remind rephrase rank search"
    " share shorten simplify sketch solve sort spell teach think try verify walk play go come wait hold let".split()
)
COMMANDS = frozenset("copy address reply refer exclude greet write spell cite abbreviate assume treat skip mark label round".split())

# Possessions that say nothing of anybody.
PASSING = frozenset(
    "day morning bad mistake fault head mind turn question point opinion view side way guess bet problem coffee lunch break time life god"
    " apology apologies thanks pleasure understanding conversation chat question message request last next previous earlier".split()
)
GENERIC = frozenset(
    "new old good bad big small great nice thing things stuff way lot bit kind sort use get got go going went gone come make made take took"
    " have has had be being been do did done say said tell told know think want need like today yesterday tomorrow now day days week weeks"
    " month months year years time times first last next other another more most much many very really still already just back one two"
    " three four five six seven eight nine ten all every each own people person everybody everything anything something nothing after"
    " instead idea plan change due owing account changed moved move switch switched keep kept put set start started stop stopped"
    " end ended end ends because"
    " reason since long short right wrong sorry actually correction meant typo forget delete remove erase please call called name named"
    " these those here there over again never always also too well only even course decided decide decision however mixed misread set"
    " thanks around few scrap give gave cave caved overrule longer revert reverted merge merged cancel cancelled flip flipped"
    " drop dropped ditch mix bump bumped upgrade upgraded downgrade downgraded"
    " relocate relocated hand handed become became migrate migrated rename renamed postpone postponed raise raised lower lowered"
    " besides addition talk talked send sent meanwhile number numbers date part place course note fine off under until before".split()
)
