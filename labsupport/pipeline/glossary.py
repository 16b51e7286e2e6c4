"""Word lists of the search, short enough to read: stop words, and the shop's words in English and French.

Nothing here is learned from data; add a line where your own corpus needs one. SQLite does no stemming, so every form
that should be found is written out. The first form is the one used in a translated query.
"""

from __future__ import annotations

import unicodedata

# Words that say how a question is put, not what it is about. "no" and "not" are here: BM25 cannot use them.
ENGLISH_STOP_WORDS = """
a about after again all also am an and any are as at be because been before being but by can could d did do does
doing don during each for from get gets give given go goes got had has have having he her here hers him his how i if
in into is it its just ll long m many may me might more most much must my need no nor not now of off on once one only
or other our ours out over own please put re s same shall she should so some such t take takes tell than that the
their theirs them then there these they this those through to too under until up upon us ve very want was we were
what when where whether which while who whom whose why will with would yes you your yours
"""
FRENCH_STOP_WORDS = """
ai aie as au aux avec avez avoir avons ce ceci cela celle celui ces cet cette ceux chez ci combien comment d dans
de depuis des dois doit donc du elle elles en encore es est et etait ete etre eu faire fait faut il ils j je l la le
les leur leurs lors lui m ma mais me meme memes mes moi mon n ne ni non nos notre nous on ont ou par pas pendant peut
peux plus pour pourquoi prend puis qu quand que quel quelle quelles quels qui quoi s sa sans se sera ses si son sont
sur t ta te temps tes toi ton tous tout toute toutes tres tu un une vers vos votre vous y
"""
STOP_EN, STOP_FR = frozenset(ENGLISH_STOP_WORDS.split()), frozenset(FRENCH_STOP_WORDS.split())

# English forms = French forms
GLOSSARY_TEXT = """
extended warranty, extended warranties, warranty extension = extension de garantie, extensions de garantie
warranty, warranties, guarantee, guaranteed = garantie, garanties, garanti
pressure washer, pressure washers = nettoyeur haute pression, nettoyeurs haute pression
lawn mower, mower, mowers = tondeuse, tondeuses
hedge trimmer = taille-haie, taille-haies
string trimmer = coupe-bordure, coupe-bordures
leaf blower = souffleur
greenhouse = serre
garden shed, shed = abri de jardin
spare part, spare parts = pièce détachée, pièces détachées
pump, pumps = pompe, pompes
blade, blades = lame, lames
hose = tuyau
battery, batteries = batterie, batteries
charger, chargers = chargeur, chargeurs
serial number = numéro de série
recall, recalled = rappel, rappelé
delivery, deliver, delivered, shipping = livraison, livraisons, livrer, livré, livrée, livrés
ship, shipped = expédier, expédié, expédiée, expédition
parcel, parcels = colis
tracking = suivi
address = adresse
pickup, collect, collected = retrait, retirer
store, stores, shop = magasin, magasins
order, orders, ordered = commande, commandes, commander, commandé
cancel, cancelled = annuler, annulation, annulez
change, changed = modifier, modification
return, returns, returned, send back = retourner, retour, retours, renvoyer
unused, not used = non utilisé, inutilisé
item, items = article, articles
refund, refunds, refunded = remboursement, remboursements, rembourser, remboursé
exchange = échange, échanger
price, prices = prix, tarif, tarifs
cost, costs = coûter, coûte, coûtent, coût, frais
free = gratuit, gratuite, gratuitement
pay, paid, payment, payments = payer, payé, paiement, paiements
invoice, invoices = facture, factures
billed twice, charged twice = facturé deux fois, débité deux fois
card, cards = carte, cartes
gift card, gift cards = carte-cadeau, cartes-cadeaux, carte cadeau, cartes cadeaux
discount, discounts = remise, réduction, rabais
staff, employee, employees = personnel, employé, employés
customer, customers = client, clients, clientèle
account = compte
sell, sold, sells = vendre, vend, vendez, vendu, vendus
buy, bought = acheter, achète, achetez, acheté, achat
keep, kept, store indoors = conserver, conservez, conserve, garder, gardez
call, calls = appel, appels
recording, recordings = enregistrement, enregistrements
privacy, personal data = données personnelles, confidentialité
complaint, complaints = réclamation, réclamations, plainte
repair, repairs, repaired = réparation, réparations, réparer, réparé
workshop = atelier
assemble, assembly = montage, monter, assembler
install, installation = installer, installez, installation
start = démarrer, démarre
flash, flashes, blink = clignotement, clignotements, clignote
overheating = surchauffe
sharpen = affûter, aiguiser
clean, cleaning = nettoyer, nettoyage
winter = hiver
frost = gel
loyalty, points = fidélité, points
how long = combien de temps, quelle durée
how many, how much = combien
day, days = jour, jours
business day, business days = jour ouvrable, jours ouvrables
week, weeks = semaine, semaines
year, years = an, ans, année, années
hour, hours, opening hours = heure, heures, horaires
"""


def fold(text: str) -> str:
    """Lower case and without accents: "Réclamation" and "reclamation" are one word."""
    return "".join(c for c in unicodedata.normalize("NFKD", text.lower()) if not unicodedata.combining(c))


def _entries() -> list[dict[str, tuple[str, ...]]]:
    entries = []
    for line in GLOSSARY_TEXT.strip().splitlines():
        english, french = (tuple(form.strip() for form in side.split(",")) for side in line.split("="))
        entries.append({"en": english, "fr": french})
    return entries


GLOSSARY = _entries()
