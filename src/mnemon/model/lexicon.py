"""What the built-in model knows of language: words, sentences, questions, topics, and who "I" and "you" are.

English by table, other languages by their words alone. Text in, text out: it knows nothing of chats, requests or ranking.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass, replace
from functools import lru_cache

# ---------------------------------------------------------------- words

STOP = frozenset(
    """a about after again against ago all already also always am an and any anyone anything anyway are aren't as at back be because been
    before being between brief but by came can can't chat come concise conversation could couldn't currently describe detail details did
    didn't discuss discussed do does doesn't doing don't done during each earlier engineering even ever every everything exactly explain
    for from gave get getting give given go goes going gone got had happen happened happens has hasn't have haven't he her here hers him
    his how how's i i'd i'll i'm i've if important in instead into is isn't it it's its just know later let let's list lot made major
    make makes many me mean memory mention mentioned mine more much must my never no not now of off ok on once one only or other our out
    over per please question quite really recall recent remember remind report said say says shall she should shouldn't show since so
    some soon still stored story summarise summarize summary talk talked technical tell than that that's the their them then there
    there's these they thing things think this those though thought through to told too under until up us very via was wasn't we we'd
    we'll we're we've week went were weren't what what's when when's where where's whether which while who who's whom whose why why's
    will with within without won't would wouldn't yet you you're you've your yours""".split()
)

# What says only which sort of thing is asked for: it counts in full where the question has nothing better.
WEAK_WORDS = """big called change choose company current date day decide decision far favorite favourite find first handle have high info
    information keep kind large last like live long look main month name need new next number old option order own past people person pick
    place plan position prefer reason recent run service set setup share side software sort start state status stay style system take time
    tool try type use usually vendor want work year"""

# Forms that no rule brings together, and a few short forms, each to the stem they share.
_SHARED = """postgr: postgresql pg; javascript: js; typescript: ts; kubernet: k8s; python: py; databas: db; go: went; choos: chose chosen;
    buy: bought; build: built; writ: wrote written; run: ran; meet: met; leav: left; tak: took taken; pai: pay paid; teach: taught;
    fli: fly flew flown flight; eat: ate eaten; driv: drove driven; grow: grew grown; speak: spoke spoken; break: broke broken;
    begin: began begun; find: found; keep: kept; sell: sold; send: sent; sleep: slept; win: won; los: lost; fall: fell; feel: felt;
    child: children kid; wif: wives; mous: mice; birth: born; marr: married wedding; mother: mum mom; father: dad; color: colour;
    favorit: favourite; decid: decision; email: mail; doctor: doc; swim: swam; sing: sang; rid: rode ridden; hold: held; catch: caught;
    death: died dead die; prescrib: prescription; own: owner; approv: approval; arriv: arrival; remov: removal; wear: wore worn;
    invalid: invalidate; renew: renewal;
    feed: fed; lead: led; spend: spent; bring: brought; draw: drew drawn; hear: heard; stand: stood; throw: threw; wak: woke; bicycl: bike;
    grandfath: grandpa grandfather; grandmoth: grandma grandmother"""
ALIASES = {form: shared.strip() for shared, _, forms in (entry.partition(":") for entry in _SHARED.split(";")) for form in forms.split()}

# Cutting by a table and `split` takes a fifth of the time of a regular expression, and it is most of what an answer costs.
_BREAKS = dict.fromkeys(map(ord, '"`,;:!?()[]{}<>/\\|*_-=~@&^%$€£¥“”„«»‹›‘—–…•·¿¡、。！？，：；（）「」『』'), " ")
_LONGEST = 64  # characters of a word; what is longer is not one, and would fill the cache of stems
_CJK = re.compile("[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af]")
_SUFFIXES = ("ization", "isation", "ation", "ement", "ment", "ness", "ance", "ence", "able", "ible", "ical", "ful", "ive", "ic", "ly")


def _plain(word: str) -> str:
    """Without punctuation around it, accents and possessive endings."""
    word = word.replace("’", "'").strip(".'")
    if not word.isascii():
        word = "".join(c for c in unicodedata.normalize("NFKD", word) if not unicodedata.combining(c))
    return word.removesuffix("'s").removesuffix("s'")


def _singular(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        return word[:-3] + "y"
    if word.endswith(("sses", "xes", "ches", "shes")):
        return word[:-2]
    return word[:-1] if word.endswith("s") and not word.endswith(("ss", "us", "is")) else word


def _without_tense(word: str) -> str:
    for suffix in ("ing", "ed"):
        base = word.removesuffix(suffix)
        if base != word and len(base) > 2 and any(c in "aeiouy" for c in base):
            return base[:-1] if base[-1] == base[-2] and base[-1] not in "lsz" else base
    return word


@lru_cache(maxsize=32_768)
def stem(word: str) -> str:
    """The part of a lower-case word that its forms share."""
    word = _plain(word) or word
    if word in ALIASES or len(word) < 4 or word[0].isdigit():
        return ALIASES.get(word, word)
    word = _singular(word)
    word = _without_tense(ALIASES.get(word, word))
    if word.endswith(_SUFFIXES):
        suffix = next(s for s in _SUFFIXES if word.endswith(s))
        word = word[: -len(suffix)] if len(word) - len(suffix) > 3 else word
    return ALIASES.get(word) or word.rstrip("eyi") or word


def words(text: str) -> list[str]:
    """The lower-case words of a text; scripts without spaces are cut into pairs of characters."""
    found = text.casefold().translate(_BREAKS).split()
    if len(text) > 1000:
        found = [word[:_LONGEST] for word in found]
    if text.isascii() or not _CJK.search(text):
        return found
    return [w for word in found for w in ([word[i : i + 2] for i in range(max(1, len(word) - 1))] if _CJK.match(word) else [word])]


def stems(text: str) -> frozenset[str]:
    """The stems of all words of a text."""
    return frozenset(map(stem, words(text)))


WEAK = stems(WEAK_WORDS)
EMPTY = stems(" ".join(STOP))

# ---------------------------------------------------------------- sentences

_ABBREVIATION = re.compile(r"(?:\b(?:dr|mr|mrs|ms|prof|st|vs|no|approx|e\.g|i\.e|inc|ltd|jr|sr|vol|fig|ca)|\b[A-Z])\.$", re.IGNORECASE)
_END = re.compile(r"(?<![.!?…])[.!?…]++[\"'”’)\]]*+(?=\s++[^a-z])|[。！？]++")
_FENCE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_BULLET = re.compile(r"^\s*(?:[-*•>]|\d{1,2}[.)]|#{1,6})\s+")


def sentences(text: str) -> list[str]:
    """The sentences of a text, without list marks and without fenced code."""
    found: list[str] = []
    for raw in _FENCE.sub("\n", text).splitlines() if "```" in text else text.splitlines():
        line, start = _BULLET.sub("", raw), 0
        for end in _END.finditer(line):
            if not _ABBREVIATION.search(line, max(start, end.end() - 8), end.end()):
                found.append(line[start : end.end()].strip())
                start = end.end()
        found.append(line[start:].strip())
    return [s for s in found if s]


_WH = r"(?:in |on |at |from |to |since |until |for |by )?(?:what|which|who|whom|whose|why|where|how|when)"
_ASKS = re.compile(
    r"^(?:(?:and|so|but|ok|okay|hey|hi|well|now|also|then|please|sorry|hm+|quick question)[,:]?\s+)*(?:"
    rf"{_WH}(?:['’]s|['’]re)?\b(?!\s+(?:i|we|you|he|she|it|they|a|an|the)\b)(?!\s+is\s+(?:why|how|what)\b)"
    r"|(?:is|are|was|were|do|does|did|has|have|had|can|could|will|would|should|shall|may|am)\s+"
    r"(?:i|we|you|he|she|it|they|there|this|that|my|our|your|the|any|anyone|anything)\b"
    r"|i(?:['’]d like to know|['’]m wondering| wonder| forgot| forget| (?:want|need|would like) to know"
    rf"| (?:can['’]t|cannot|don['’]t) (?:remember|recall)),?\s+(?:my name|if|whether|{_WH}))",
    re.IGNORECASE,
)
_TELLS = re.compile(
    r"^(?:(?:and|so|ok|okay|now|please|then|also)[,:]?\s+)*(?:(?:tell|show|give|remind|refresh)\s+(?:me|us|my memory)\b(?!\s+to\b)"
    r"|(?:list|summari[sz]e|recap|review|recall|identify|describe|explain|compare|analy[sz]e|prepare|find|report on|name)\s+"
    r"(?:me|us|the|all|our|my|what|how|which|why|every|everything|any|a|an|one|two|three|some|your)\b)",
    re.IGNORECASE,
)
_TIME_CLAUSE = re.compile(r"^when\s+(?!is|are|was|were|do|does|did|will|can|should|has|have|had)", re.IGNORECASE)


def is_question(sentence: str) -> bool:
    """Whether somebody wants to know something, with or without a question mark, or as a command to tell it."""
    if sentence.rstrip("\"'”’)]* ").endswith(("?", "？", "؟")) or _TELLS.match(sentence):
        return True
    return bool(_ASKS.match(sentence)) and not sentence.endswith("!") and not _TIME_CLAUSE.match(sentence)


SUPPOSED = re.compile(
    r"\b(?:what if|suppos(?:e|ing)|imagine|hypothetically|would|if|might|maybe|perhaps|for example|could)\b", re.IGNORECASE
)
CHANGES = re.compile(
    r"\b(?:no|not|sorry|correction|typo|wrong|instead|now|chang(?:e|ed|es)|moved?|actually|meant|misread|after all|no longer|any ?more"
    r"|these days|switched|as well|too|also|bumped|upgraded|renamed|replaced|handed over|took over|cancell?ed|scrap|as of|from now on)\b",
    re.IGNORECASE,
)
FIRST_PERSON = re.compile(r"\b(?:I|my|we|our|me|us|mine)\b", re.IGNORECASE)
POINTING = re.compile(r"\b(?:it|its|he|she|him|her|his|they|them|their|this|that|these|those)\b", re.IGNORECASE)
_LEAD = re.compile(
    r"^(?:(?:please|also|just|and|noted|ok|okay|so|btw|by the way|fyi|for the record|for your information)[,:]?\s+)*"
    r"(?:remember|note|keep in mind|bear in mind|be aware|don['’]t forget)(?:\s+that|,|:)\s+"
    r"|^(?:noted|note|fyi|btw|for the record|heads[- ]up):\s+",
    re.IGNORECASE,
)


def bare(sentence: str) -> str:
    """A statement without the words that only hand it over, such as "please remember that"."""
    rest = _LEAD.sub("", sentence, count=1)
    return rest if rest == sentence else rest[:1].upper() + rest[1:]


# ---------------------------------------------------------------- topics


@dataclass(frozen=True, slots=True)
class Topic:
    """Something people talk about: the words that ask for it, those that tell of it, those that only hint at it, and a turn of phrase.

    The phrase is looked for only in texts with one of the words in `gate`, because looking is slow.
    """

    asked: frozenset[str]
    told: frozenset[str]
    hints: frozenset[str]
    gate: frozenset[str]
    phrase: re.Pattern[str] | None

    def strength(self, found: frozenset[str], text: str) -> float:
        """How surely a text, given as stems and as it is, is about this topic: 0 to 0.95."""
        told = len(self.told & found)
        if self.phrase and not (self.gate and self.gate.isdisjoint(found)) and self.phrase.search(text):
            told += 1
        hinted = not self.hints.isdisjoint(found)
        return min(0.95, 0.6 + 0.1 * told + 0.1 * hinted) if told else 0.3 * hinted


_DATABASES = """postgres mysql mariadb sqlite mongodb cassandra dynamodb cockroachdb scylladb firebird timescaledb oracle clickhouse duckdb
    neo4j elasticsearch bigquery snowflake couchdb influxdb supabase"""
_CACHES = "redis memcached hazelcast keydb dragonfly varnish valkey"
_QUEUES = "kafka rabbitmq nats activemq redpanda zeromq sqs celery pulsar"
_CLOUDS = "aws azure gcp kubernetes docker heroku vercel netlify rds s3 lambda terraform ansible nomad hetzner cloudflare ec2 helm"

# One topic an entry: the words that ask for it | those that tell of it beside them | those that hint at it.
_TABLE = f"""
tech technology stack language framework library toolchain software platform programming use written code
    | {_DATABASES} {_CACHES} {_QUEUES} {_CLOUDS} rust python java javascript typescript golang kotlin swift scala haskell elixir erlang
    clojure ocaml zig ruby php perl lua dart julia fortran cobol c++ c# gleam nim crystal lisp prolog django flask fastapi rails react vue
    angular svelte spring nextjs nuxt laravel phoenix tokio actix axum pytorch tensorflow numpy pandas graphql grpc nodejs deno tailwind qt
    unity godot electron flutter htmx
    | build write use develop implement rewrite port project app service backend frontend server;
database datastore storage store | {_DATABASES} sql nosql replica | table schema query;
cache caching | {_CACHES} ttl invalidation;
queue broker messaging | {_QUEUES};
architecture design structure | microservice monolith serverless modular service module layer cluster sourcing hexagonal | split merge api;
host hosted deploy deployment cloud infrastructure region server | {_CLOUDS} datacenter vps | cluster node production;
api interface endpoint | graphql grpc rest soap trpc rpc openapi websocket webhook;
ci pipeline build | jenkins circleci buildkite gitlab travis teamcity runner | test deploy;
monitoring observability metrics logging | datadog grafana prometheus honeycomb splunk sentry alert dashboard;
editor ide | vim neovim emacs vscode helix zed sublime intellij pycharm;
decision decide choose pick select agree settle approve conclude change direction
    | adopt switch migrate remove drop replace add revert merge commit deprecate reject cancel introduce move retire abandon ditch freeze
    upgrade | plan keep roll;
drop remove leave ditch abandon stop quit | rip retire delete deprecate kill replace revert cancel;
problem issue bug incident outage trouble wrong error fail failure crash pain | broken stale leak timeout slow regression flaky hurt sore;
live city town country place location home based move from residence address | street district village flat apartment;
job work profession occupation career employer company employ role
    | nurse teacher engineer doctor developer lawyer baker carpenter designer accountant chef pilot scientist manager freelancer
    electrician plumber consultant programmer student | office colleague boss;
like prefer preference favorite enjoy love want taste | adore hate dislike fond fan rather always never;
hobby sport leisure free weekend fun
    | hike climb swim paint guitar piano chess knit garden football tennis cycle ski photography play yoga sail;
instrument music | guitar piano cello violin drum flute trumpet orchestra choir band;
family relative
    | wife husband son daughter sister brother mother father aunt uncle cousin niece nephew grandmother grandfather baby twins;
child | son daughter baby twins toddler;
sibling | sister brother;
parent | mother father;
partner spouse | wife husband girlfriend boyfriend fiance fiancee marry;
pet animal | dog cat puppy kitten rabbit hamster parrot horse goldfish terrier labrador poodle tortoise;
eat food diet allergy avoid intolerance touch | vegan vegetarian gluten lactose peanut nut dairy shellfish kosher halal | meal dinner;
cook recipe ingredient dish meal dinner oven
    | bake boil fry simmer flour egg butter sauce soup cake bread dough salt tablespoon | minute degrees;
drink beverage | tea coffee wine beer juice water milk espresso lemonade;
health medical medicine medication drug illness condition disease treatment symptom doctor diagnosis pill tablet
    | diabetes asthma dose mg insulin prescribe surgery allergy ibuprofen metformin aspirin migraine hypertension antibiotic
    therapy;
travel trip vacation holiday journey destination | flight hotel train airport visa passport ticket itinerary hostel ferry tour | book;
cost price budget money pay spend expensive fee salary worth | euro dollar pound usd eur invoice;
contact reach phone email telephone call;
url link website domain;
answer reply response respond;
delay postpone late | postpone move reschedule;
age old birthday birth;
color | red blue green yellow teal purple orange pink black white grey gray brown turquoise crimson beige violet;
car vehicle drive | toyota volvo honda bmw tesla skoda fiat ford kia mazda audi renault vw motorbike van truck bicycle bike;
study school university education degree college | bachelor master phd graduate course kindergarten;
computer laptop device machine hardware phone | macbook thinkpad iphone ipad desktop tablet notebook;
deadline due launch release ship finish start begin | freeze until | sprint;
meeting appointment schedule event | meet dentist interview standup ceremony rehearsal party conference | calendar;
team colleague coworker boss manager | lead cto ceo report;
speak tongue | german french spanish italian norwegian polish english japanese portuguese dutch swedish fluent mandarin chinese russian;
owner own responsible charge lead approve sign | maintain own
"""  # noqa: S608 - a table of words, not a query

# Turns of phrase that tell of a topic, by the first word of its entry: the words that must be there, and the phrase.
_PHRASES = {
    "tech": (
        "build write code program develop implement port",
        r"(?i:buil|wr[io]t|cod(?:e|ing)|program|develop|implement|port(?:ed|ing))[^.?!]{0,60}? (?:in|with|on|using) [A-Z]",
    ),
    "decision": ("go longer now all", r"\b(?:went with|go(?:ne|ing)? with|no longer|from now on|after all)\b"),
    "drop": ("give more rid", r"\b(?:g[ai]ven? up|no more|rid of)\b"),
    "live": (
        "live base move relocate home birth grow come am i'm",
        r"(?i:\b(?:liv|base|mov|relocat|home|born|grew|com|am |['’]m ))[^.?!]{0,25}?\b(?:in|to|at|near|from) [A-Z]",
    ),
    "job": ("work", r"[Ww]ork(?:s|ed|ing)? (?:as|at|for|in)\b"),
    "cost": ("", r"[$€£¥]\s?\d|\d\s?(?:€|EUR|USD|GBP)"),
    "contact": ("", r"\w@[\w.-]+\.\w|\+?\d[\d ()-]{6,}\d"),
    "url": ("", r"https?://|\w\.[a-z]{2,}\b"),
    "age": ("", r"\b\d+ years? old\b|\b[Tt]urn(?:s|ed|ing)? \d|\b(?:am|is|['’]m) \d\d?\b"),
    "name": (
        "name call go i'm am",
        r"(?i:\b(?:my (?:\w+ )?name(?:['’]s| is)|call me|i go by|i(?:['’]m| am) called))|^(?:Hi,? |Hello,? )?I(?:['’]m| am) [A-Z][a-z]+",
    ),
}


def _topic(entry: str) -> Topic:
    asked, told, hints = (*map(str.strip, entry.split("|")), "", "")[:3]
    gate, phrase = _PHRASES.get(asked.split()[0], ("", ""))
    asks = stems(asked)
    return Topic(asks, (asks - WEAK) | stems(told), stems(hints), stems(gate), re.compile(phrase) if phrase else None)


TOPICS = tuple(map(_topic, _TABLE.split(";")))
OWN_NAME = _topic("name")

# ---------------------------------------------------------------- questions

KINDS = (
    ("when", r"\b(?:when|(?:what|which)\s+(?:time|day|date|month|year|week)|how long ago)\b"),
    ("why", r"\b(?:why|reasons?|how come|what\s+(?:made|caused|led)|cause)\b"),
    ("count", r"\bhow\s+(?:many|much|long|often|old|far|big|tall|high|large|fast|hot|heavy)\b|\bwhat\s+(?:number|share|percentage)\b"),
    ("who", r"\b(?:who|whom|whose)\b"),
    ("where", r"\bwhere\b"),
)
_MONTHS = (
    "jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|june?|july?|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?"
)
MARKS = {  # what a statement has that answers a question of this kind
    "why": re.compile(
        r"\b(?:because|since|due to|caus(?:e|ed|es|ing)|reasons?|so that|in order to|why|thanks to|account of|owing to|as a result"
        r"|therefore|hence|so|led to|after|to (?:avoid|prevent|reduce|save|improve|cut|stop|help|protect))\b",
        re.IGNORECASE,
    ),
    "when": re.compile(
        rf"\b(?:\d{{4}}-\d\d|(?:19|20)\d\d|q[1-4]|\d\d?(?::\d\d)? ?(?:am|pm)|\d\d?:\d\d|(?:{_MONTHS})\b|may \d|(?:in|since|until|\d) may"
        r"|(?:mon|tues|wednes|thurs|fri|satur|sun)days?|yesterday|today|tomorrow|tonight|noon|midnight|morning|evening|ago|spring"
        r"|summer|autumn|winter|easter|christmas|(?:last|next|this|every) (?:week|month|year|night|sprint)|(?:days|weeks|months)\b)",
        re.IGNORECASE,
    ),
    "count": re.compile(
        r"\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|twelve|dozen|half|once|twice|couple|daily|weekly|every|until)\b",
        re.IGNORECASE,
    ),
    "who": re.compile(r"(?<=[\w,:] )[A-Z][^\W\d_]+|^[A-Z][^\W\d_]+(?='s| (?:is|was|has|had|and|will|owns|leads|does|wants|lives|works))"),
    "where": re.compile(
        r"\b(?:in|at|near|under|behind|inside|above|below|beside|via|between) |\b(?:from|to|on|for) (?:the |our |my )?[A-Z]|\bhome\b"
    ),
}
_MANY = re.compile(
    r"\b(?:list|all|every|everything|summar\w+|overview|review|recap|decisions|things|options|facts|reasons|steps|changes|issues|problems"
    r"|incidents|anything|identify|report|before|after|order|sequence|history|originally|previously|used to|over time|reversed)\b"
    r"|\b(?:what|which)\s+(?:\w+\s+){0,2}?(?!(?:is|was|does|has|this|his|us)\b)\w+[^s\W]s\s+(?:are|were|do|did|have|can|will)\b",
    re.IGNORECASE,
)
_OVERVIEW = re.compile(
    r"\b(?:know|remember|told|tell|said|learned|noted)\b.*\b(?:me|us|you|i|we)\b|\bsummar|\bso far\b|\brecap|\bconversation\b",
    re.IGNORECASE,
)
_OWN_NAME_ASKED = re.compile(
    r"\bmy (?:first |last |full |own |sur)?name\b|\bwho (?:am i|i am)\b|\b(?:am i|i am|i['’]m) called\b|\b(?:call|address) me\b"
    r"|\bi (?:be|am) addressed\b",
    re.IGNORECASE,
)
_NAME = re.compile(r"(?<=[\w,'’] )[A-Z]\w+|\b[A-Za-z]*\d\w*")
_JOINED = re.compile(rf",?\s+and\s+(?={_WH}\b)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Unit:
    """One thing that a question asks about: a stem, the topics it stands for, and how much it matters."""

    stem: str
    topics: tuple[Topic, ...] = ()
    factor: float = 1.0


@dataclass(frozen=True, slots=True)
class Question:
    """A question taken apart; `many` wants a list, `own` is about the asker, `open` wants all there is to know."""

    units: tuple[Unit, ...]
    kind: str
    many: bool
    own: bool
    open: bool


def units(text: str) -> tuple[Unit, ...]:
    """The words of a text that carry its meaning."""
    rest = _OWN_NAME_ASKED.sub(" ", _TELLS.sub(" ", text).replace("for a living", "job"))
    kept = [w for w in map(_plain, words(rest)) if w not in STOP and (len(w) > 1 or not w.isascii())]
    found = dict.fromkeys(map(stem, kept))
    firm = any(s not in WEAK for s in found)
    names = stems(" ".join(_NAME.findall(text)))
    weights = {s: 0.35 if firm and s in WEAK else 1.5 if s in names else 1.0 for s in found if s}
    made = [Unit(s, tuple(t for t in TOPICS if s in t.asked), weight) for s, weight in weights.items()]
    return (Unit("my name", (OWN_NAME,)), *made) if _OWN_NAME_ASKED.search(text) else tuple(made)


def question(text: str, earlier: tuple[Unit, ...] = ()) -> Question:
    """A question taken apart; what it only points at is looked for in what was said before."""
    asked = units(text)
    firm = [u for u in asked if u.factor >= 1]
    everything = bool(_OVERVIEW.search(text)) and all(u.stem in WEAK for u in asked)
    if earlier and not everything and (not firm or (len(firm) == 1 and POINTING.search(text))):
        share, known = (0.8 if firm else 1.0) / len(earlier), {u.stem for u in asked}
        asked += tuple(replace(u, factor=share) for u in earlier if u.stem not in known)
    kind = next((name for name, pattern in KINDS if re.search(pattern, text, re.IGNORECASE)), "")
    return Question(asked, kind, bool(_MANY.search(text)), bool(FIRST_PERSON.search(text)), everything)


def questions(text: str, earlier: str) -> list[Question]:
    """The questions in a text, at most three; `earlier` is what was said before it."""
    before, found = units(earlier[:1000])[:8], []
    for sentence in [s for s in sentences(text) if is_question(s)][:3]:
        for part in _JOINED.split(sentence[:1000]):
            found.append(question(part, before))
            before = found[-1].units[:8] or before
    return found[:3]


# ---------------------------------------------------------------- person

_QUOTED = re.compile(r"(\"[^\"\n]*\"|“[^”\n]*”|«[^»\n]*»|`[^`\n]*`|https?://\S+)")
_OWN = re.compile(
    r"(?<![\w@./\\#$&'’+-])(?:(?P<am>[Aa]m )?(?P<i>I|i(?=['’ ]\w))|(?P<word>[Mm]y|MY|[Mm]e|[Mm]ine|[Mm]yself|[Ww]e|WE|[Oo]ur|OUR|[Uu]s"
    r"|[Oo]urs|[Oo]urselves|[Yy]ou|[Yy]our|[Yy]ours|[Yy]ourself))(?P<short>['’](?:m|ve|ll|d|re)\b)?"
    r"(?P<be>(?: (?:also|really|currently|actually|still|now|never|always|just|only|already))? (?:am|was|are|were)\b)?"
    r"(?![\w@/\\+-]|\.\w|['’]\w|\(\))"
)
_FLIPPED = {
    "my": "your", "me": "you", "mine": "yours", "myself": "yourself", "we": "you", "our": "your", "us": "you", "ours": "yours",
    "ourselves": "yourselves", "your": "my", "yours": "mine", "yourself": "myself",
}  # fmt: skip
_NUMBERED = re.compile(
    r"\b(?:war|part|phase|chapter|type|class|volume|act|section|level|stage|tier|book|grade|for|index|variable) $", re.IGNORECASE
)
_BEFORE_SUBJECT = re.compile(
    r"(?:^|[,;:(.!?]|\b(?:and|that|if|when|because|but|so|as|what|how|where|than|hope|think|know|said))\s*$", re.IGNORECASE
)
_AFTER_SUBJECT = re.compile(r" (?:can|could|will|would|should|have|had|do|did|may|might|must|need|know|said|told)\b")
_ADDRESSES = re.compile(r"\b(?:I|me|my|mine|myself)\b|\bi['’ ]\w|^(?:please )?(?:your\b|you(?: are|['’]re| should| must)\b)", re.IGNORECASE)


def exchanged(text: str) -> str:
    """A user's statement as one says it back: "I'm building" becomes "You're building"; quotations and names stay."""
    addresses = bool(_ADDRESSES.search(text))

    def turned(match: re.Match[str]) -> str:
        return _turned(match, addresses=addresses)

    parts = _QUOTED.split(text)
    return "".join(part if i % 2 else _OWN.sub(turned, part) for i, part in enumerate(parts))


def _turned(match: re.Match[str], *, addresses: bool) -> str:
    """One pronoun, with the verb that hangs on it, seen from the other side."""
    word, before = match["i"] or match["word"], match.string[: match.start()]
    first = not before.strip("([\"'“‘ ") or before.rstrip("([\"'“‘ ").endswith((".", "!", "?", "\n"))
    if match["i"]:
        return match.group() if _NUMBERED.search(before) else _turned_i(match, first=first)
    if word.istitle() and not first and not before.rstrip().endswith((":", ",", "-", "–", "—")):
        return match.group()  # "The Last of Us", "My Little Pony": a name
    key = word.lower()
    if key == "mine" and not re.search(r"\b(?:of|is|are|was|were|like|than|not) $", before):
        return match.group()  # a coal mine
    if key == "you":
        return _turned_you(match, first=first) if addresses else match.group()
    if key.startswith("you") and not addresses:
        return match.group()
    return _cased(_FLIPPED[key], word) + (match["short"] or "") + (match["be"] or "")


def _cased(new: str, old: str) -> str:
    return new.upper() if old.isupper() else new.capitalize() if old.istitle() else new


def _turned_i(match: re.Match[str], *, first: bool) -> str:
    short = (match["short"] or "").replace("m", "re")
    if match["am"]:
        return ("Are" if match["am"][0] == "A" else "are") + " you" + short
    be = re.sub(r"was$", "were", re.sub(r"am$", "are", match["be"] or ""))
    return ("You" if first else "you") + short + be


def _turned_you(match: re.Match[str], *, first: bool) -> str:
    if match["short"]:
        return "I" + match["short"].replace("re", "m")
    subject = (
        first or match["be"] or _BEFORE_SUBJECT.search(match.string[: match.start()]) or _AFTER_SUBJECT.match(match.string[match.end() :])
    )
    be = re.sub(r"were$", "was", re.sub(r"are$", "am", match["be"] or ""))
    return ("I" if subject else "me") + be
