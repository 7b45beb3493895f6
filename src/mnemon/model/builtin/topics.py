"""What people talk about: for each topic the words that ask for it, and the words and phrases that tell of it.

A table and its reading. It knows nothing of questions or of how a match is weighed.
"""

from __future__ import annotations

from dataclasses import dataclass

from mnemon.model.builtin import lexicon, patterns


@dataclass(frozen=True, slots=True)
class Topic:
    """Something people talk about: the words that ask for it, those that tell of it, those that only hint at it, and a turn of phrase.

    The phrase is looked for only in texts with one of the words in `gate`, because looking is slow.
    """

    asked: frozenset[str]
    told: frozenset[str]
    hints: frozenset[str]
    gate: frozenset[str]
    phrase: patterns.Lazy | None

    def strength(self, found: frozenset[str], text: str) -> float:
        """How surely a text, given as stems and as it is, is about this topic: 0 to 0.95."""
        told = len(self.told & found)
        if self.phrase and not (self.gate and self.gate.isdisjoint(found)) and self.phrase().search(text):
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
reverse reversal undo overturn | revert rollback | return;
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
    "reverse": ("back instead longer more", r"\bback (?:in)?to\b|\binstead of\b|\b(?:no longer|any ?more)\b"),
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
    asks = lexicon.stems(asked)
    return Topic(
        asked=asks,
        told=(asks - lexicon.WEAK) | lexicon.stems(told),
        hints=lexicon.stems(hints),
        gate=lexicon.stems(gate),
        phrase=patterns.lazy(phrase) if phrase else None,
    )


ALL = tuple(map(_topic, _TABLE.split(";")))
OWN_NAME = _topic("name")
