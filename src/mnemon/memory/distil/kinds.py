"""Kinds of things: a rabbit is a pet, a van a car, a monolith an architecture. General word lists, for what shares a kind but no word."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from mnemon.memory import words

# Each kind by its names, and what belongs to it.
TABLE = """
pet animal: dog cat puppy kitten rabbit hamster parrot budgie goldfish pony horse tortoise turtle guinea terrier labrador poodle dachshund
  spaniel retriever collie greyhound beagle hen goat sheep
car vehicle: van suv hatchback estate minivan pickup truck convertible driveway garage parking volvo toyota honda mazda nissan kia hyundai
  tesla volkswagen vw bmw audi mercedes skoda seat fiat renault peugeot citroen dacia opel ford subaru suzuki porsche lexus jeep chevrolet
  own drive
bike bicycle: cycle cycling ebike tandem cargo
transport commute: tram bus train bike car ferry metro subway underground walk tube coach
country: switzerland swiss austria austrian germany german france french italy italian spain spanish portugal portuguese greece greek
  croatia norway norwegian sweden swedish denmark danish finland finnish iceland ireland irish scotland scottish england wales netherlands
  dutch belgium poland polish czechia hungary turkey turkish egypt morocco tunisia japan japanese china thailand vietnam india canada
  mexico brazil peru chile argentina australia kenya crete mallorca madeira tuscany bali cyprus malta
trip holiday vacation travel summer: cruise flight camping beach safari honeymoon cabin hotel staycation abroad resort
architecture design platform: monolith monolithic microservice microservices serverless monorepo sourcing cqrs modular layered hexagonal
  faas cluster lambda mesh soa
programming: python rust golang java kotlin typescript javascript ruby php elixir erlang zig scala haskell swift clojure perl cobol
database storage: postgres postgresql mysql mariadb sqlite oracle mongodb mongo cassandra redis dynamodb duckdb clickhouse cockroachdb
  couchdb neo4j
cloud hosting hoster provider: aws azure gcp hetzner ovh heroku vercel netlify datacenter premises kubernetes nomad
api: graphql rest grpc soap rpc trpc
ci build pipeline: jenkins circleci buildkite teamcity travis gitlab actions drone bamboo runners
monitoring observability: datadog grafana prometheus honeycomb splunk nagios zabbix dynatrace sentry
editor ide: vim neovim emacs helix zed vscode intellij pycharm sublime nano
chat messenger: slack teams discord signal whatsapp telegram matrix mattermost zulip
language: english german french spanish italian portuguese russian mandarin chinese japanese korean arabic dutch danish swedish norwegian
  finnish polish czech turkish hindi welsh irish latin greek speak fluent
diet food eat: vegetarian vegan meat fish pescatarian carnivore gluten dairy keto sugar carnivorous omnivore
drink: coffee tea wine beer juice matcha kombucha alcohol sober cider whisky espresso teetotal lemonade
heating: gas oil pump pellet wood stove boiler radiator solar district
floor: tile parquet laminate carpet vinyl cork concrete
house home housing: flat apartment condo cottage bungalow rent buy mortgage tenancy landlord
room kitchen: bathroom bedroom sofa worktop cabinet
school schooling: homeschool montessori boarding nursery kindergarten waldorf academy college
payment pay: cash card cards paypal invoice contactless bitcoin cheque
shop sale selling: online web store stall market retail etsy shopify
paper office: digital paperless records paperwork scan
sport exercise: running jogging swimming football handball tennis rowing climbing bouldering yoga boxing fencing judo karate basketball
  volleyball hockey rugby cricket golf skiing surfing marathon triathlon gym pilates cycling badminton squash hiking archery
instrument music: piano guitar violin viola cello drum drums flute trumpet saxophone clarinet harp ukulele banjo organ accordion oboe
  bassoon
hobby hobbies pastime interest: knitting pottery birdwatching chess painting drawing gardening baking photography woodworking beekeeping
  embroidery origami crochet sewing sport instrument collecting climbing bouldering fencing running swimming dancing astronomy calligraphy
  genealogy geocaching juggling model blacksmithing
book reading: novel read reading author chapter memoir biography nightstand paperback thriller
film movie series: watch watched cinema episode season documentary
study degree major subject: medicine nursing law engineering physics chemistry biology history philosophy economics geology mathematics
  maths psychology architecture literature
investment money savings: gold bonds stock shares fund etf crypto bitcoin portfolio
loan debt borrowing: mortgage credit overdraft lease
job work employer career: company employed freelance hired contract position salary
relationship: wedding marriage married divorce divorced engaged single wife husband girlfriend boyfriend
health illness condition: diabetes diabetic asthma allergy allergic surgery diagnosis medication intolerant intolerance coeliac arthritis
  migraine
medication medicine drug: tablet pill dose mg metformin insulin ibuprofen paracetamol aspirin statin antibiotic inhaler ramipril
phone mobile: iphone android pixel galaxy fairphone nokia smartphone
laptop computer: macbook thinkpad notebook chromebook desktop framework
social: instagram facebook tiktok twitter reddit mastodon bluesky linkedin
meeting: remote office hybrid zoom onsite
family relative: sister brother mother father son daughter cousin aunt uncle nephew niece grandmother grandfather parents twins child
  children
name: called named
address home place: live street road avenue lane
"""


def _read() -> tuple[dict[str, frozenset[str]], dict[str, tuple[str, ...]]]:
    kinds: dict[str, set[str]] = {}
    members: dict[str, tuple[str, ...]] = {}
    for line in TABLE.strip().replace("\n  ", " ").splitlines():
        names, _, rest = line.partition(": ")
        stems = [s for w in rest.split() for s in words.words(w)]
        own = [s for w in names.split() for s in words.words(w)]
        for stem in (*own, *stems):
            kinds.setdefault(stem, set()).add(own[0])
        for name in own:
            members[name] = tuple(dict.fromkeys((*members.get(name, ()), *own, *stems)))
    return {stem: frozenset(found) for stem, found in kinds.items()}, members


KINDS, MEMBERS = _read()


@lru_cache(maxsize=4096)
def kinds(terms: tuple[str, ...]) -> frozenset[str]:
    """The kinds of the things that are named, by their first name."""
    return frozenset(kind for term in terms for kind in KINDS.get(term, ()))


def members(terms: Iterable[str]) -> tuple[str, ...]:
    """What belongs to the kinds that are named: for "book", novel, read, author."""
    return tuple(dict.fromkeys(m for term in terms for m in MEMBERS.get(term, ()) if m != term))
