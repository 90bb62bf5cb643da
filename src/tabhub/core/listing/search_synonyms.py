"""Words that mean the same to somebody who looks for a tool: people say what they want, tools what they do.

Owns two tables of everyday English, by subject, and no code. A group is a set of words of which each finds the others.
A phrase adds the words of its meaning. Both are stemmed by search_terms.
"""

from __future__ import annotations

from typing import Final

GROUPS: Final = """
delete remove erase trash discard drop clear purge wipe
create add new make insert generate establish
update edit change modify adjust correct alter revise
rename retitle title
set configure define choose
get read fetch retrieve show view see display give check look return
list enumerate browse overview all every
search find lookup query locate discover
send post write submit publish tell say notify deliver
message dm chat text note ping
email mail inbox gmail outlook e-mail
issue ticket bug task story defect item
request inquiry demand ask ticket
meeting event appointment call conference session
appointment visit consultation see checkup
pr pull merge request
screenshot picture photo snapshot image capture
photo picture image pic shot photograph
click press tap push
url link address website site href
cart basket bag trolley
buy purchase order checkout get
checkout pay buy order place
type enter input fill
enter submit record put note report
execute run eval evaluate invoke
javascript js script code
user member people person contact colleague
customer client buyer guest visitor
attendee participant guest visitor invitee people
comment reply respond answer remark
reply answer respond response
react reaction emoji thumb like
respond invitation accept decline rsvp
forward redirect pass onward
repository repo project codebase
document doc file paper
file attachment document
attach attachment upload enclose
close quit exit finish end done solve resolve complete
resolve solve fix close
complete finish done tick
open launch start begin
reopen restart again
start begin launch initiate
stop end halt terminate cease
wait sleep pause delay hold
pause suspend freeze hold interrupt
cookie session
schedule book plan arrange timetable
reschedule postpone push move shift rebook later
postpone delay defer later
book reserve reservation booking
free available availability vacant empty
move drag transfer put shift
transfer send wire pay remit
assign delegate give responsible owner
owner responsible assignee hand
star favorite favourite bookmark like important
save keep remember store bookmark retain
cancel abort stop revoke withdraw terminate end
withdraw retract cancel pull
void invalidate cancel annul
revoke withdraw stop disable unshare
subscription plan membership abonnement
unsubscribe optout stop newsletter
subscribe follow signup
download save export get
upload put add import attach publish
export download turn convert save
import load upload read
log console error
log record note write track enter
error crash exception bug failure problem
crash break fail
trace span request
request traffic network xhr
page tab content html
refresh reload
restore recover undelete back undo revert undo
rollback revert back previous undo return
version revision history edition
history past previous earlier log
invite add guest ask
share give access link collaborate
permission access right share role
collaborator access member give
archive hide store
label tag category categorize
categorize classify sort category label
sort order arrange
filter rule condition
folder directory
move folder put file
coupon discount voucher promo code
refund reimburse money back return repay
return back refund
compensation refund money claim reimburse
claim report damage insurance compensation
damage break broken scratch defect accident
dispute chargeback contest object challenge
invoice bill charge
bill invoice cost pay payment
overdue late unpaid owe outstanding
payment pay paid money
price cost fare rate fee much
fare price cost cheap ticket
expense cost spending receipt
salary wage pay payroll income earnings
payroll wage salary pay
payslip pay salary wage
profit income earn money revenue loss
revenue sales income turnover forecast
forecast predict expect outlook projection
weather rain sun snow temperature forecast storm
balance money account available funds
quota space room storage left
transaction payment charge spend spending purchase
exchange convert change rate currency
currency dollar euro money
account login profile
statement report summary
card credit debit
freeze block lock suspend
block lock stop stolen lost ban
ship delivery track send dispatch fulfill warehouse
parcel package shipment delivery box
track where follow status locate
courier driver rider delivery
redirect reroute neighbour instead deliver address
label postage stamp
stock inventory quantity piece available amount
product article item goods
wishlist favorite later remember
review rate rating feedback opinion evaluate
rate rating star score review
satisfaction happy rating feedback survey
select choose pick dropdown option
seat place window aisle
keyboard key shortcut hotkey
mute silence quiet snooze
snooze mute silence later pause disturb
notification alert disturb alarm
alert alarm warning notification page
silence quiet mute maintenance
status state presence progress condition
presence away online available active
html source markup
pin bookmark top stick
channel room group conversation
group team members
thread conversation discussion
unread missed new
direct private personal dm
user employee staff worker
employee colleague staff worker
manager boss report superior org
leave vacation holiday absence dayoff
vacation holiday leave absence office
absence sick ill absent excuse
sick ill illness disease absent
candidate applicant
applicant application apply candidate
apply application send submit
job vacancy position role work
resume cv curriculum
interview talk conversation
reject decline refuse turn
approve accept allow confirm
approve review verdict
offer contract proposal bid
bid offer price
lead prospect
deal opportunity sale contract
won win close
quote estimate offer price
estimate calculate guess predict worth value
value worth price estimate
calculate compute estimate
pipeline stage funnel
merge combine join unify consolidate
duplicate copy same twice double
copy duplicate clone
link connect relate relation
escalate raise tier level
internal private hidden colleague
note comment remark
macro template canned
template form sample
sprint iteration
board kanban column
burndown remaining chart
chart graph plot diagram
estimate points effort
priority urgent important
due deadline date
deadline due date until
subtask smaller child step part split
time hour duration
worklog hours work time
repeat recurring regular again every
recurring regular repeat standing
reminder remind nudge alarm
remind reminder nudge
today day now
diff change compare line
compare difference versus
blame author wrote changed who
contributor author
branch fork
protect lock restrict forbid
release version publish
deploy deployment release
deployment deploy release build
workflow pipeline ci action build
rerun retry again restart
job build run
build compile
commit push
secret password credential
append add bottom end
paragraph block text
query search filter select
row line entry record
cell value range field
range cell area
column field
formula calculation function
format style color colour
conditional highlight color red
pivot summarize summary group
write put enter fill set
summary summarize overview point
transcript said spoken text words
participant attendee who present
admit let allow
share let allow
recording record video
caption subtitle transcript
video clip film movie
film movie video cinema
showtime playing program screening
playlist list queue watch
song track music tune
play start listen resume hear
pause stop
volume loud quiet sound
next skip
artist singer band musician
now current moment
metric cpu memory usage load
usage used consumption use consume
incident outage emergency
outage down broken fault disruption
acknowledge confirm
page call wake alert
oncall duty shift
shift duty turn
override replace substitute take
server machine vm host instance
resize bigger larger smaller scale size
scale resize instances grow
dns domain subdomain record
cache cdn
purge clear empty flush
billing cost spend bill
firewall block traffic
backup snapshot copy
frame artboard screen
background backdrop
tweet post
post publish share tweet
trend popular trending talk
insight statistics reach analytics performance
statistics stats analytics numbers figures
follower fan audience
profile bio headline
follow subscribe
flight fly plane airline
fly flight rebook
checkin boarding pass
baggage luggage suitcase bag
hotel stay accommodation apartment room
stay hotel accommodation room night
host owner landlord
landlord host owner
rent lease hire
car ride taxi cab vehicle
ride taxi cab car trip
driver chauffeur
pickup collect fetch
shuttle pickup collect airport
tip gratuity
lost forgotten missing left
restaurant food dining
menu dish meal food
reorder again same repeat
dish meal food plate
table restaurant dinner
allergen allergy nut ingredient
takeaway delivery
envelope contract document
sign signature contract
signature sign contract
direction route way walk bike drive
route way direction path
nearby around near close here
hours open time
geocode coordinate address location
location place where
place location venue spot
traffic jam
activity workout exercise training
weight kilogram weigh
sleep night rest
heart pulse
step walk
water drink
meal eat food
light lamp bulb
turn switch
on switch
temperature heating warm cold degree thermostat
lock door key
unlock open door
camera video picture
vacuum hoover clean robot
blind shutter curtain
alarm burglar security
energy electricity power gas
meter counter reading electricity
power electricity outage
course class lesson lecture
class course lesson training
assignment homework exercise
grade mark score
mark grade
submission hand
timetable schedule lesson
pupil child student son daughter kid
teacher lecturer professor
visitor people audience traffic
conversion goal
slow performance long
table database
user account
backup restore
listing house flat home apartment property
home house flat apartment
viewing visit look inspect
viewing tour look
mortgage loan credit
article news story
headline news
listing offer
voice audio spoken speak
poll vote survey
survey questionnaire form poll
response answer result
result outcome finding
question ask
ticket admission entry
venue place location
attendee visitor guest
warehouse storage
prescription medicine drug pill repeat
medicine drug pill medication remedy
drug medicine pill
interaction together combine
doctor physician practice specialist
test laboratory lab result
vaccination vaccine shot
policy contract insurance
premium price insurance
internet wifi network connection broadband
data gigabyte traffic volume
plan tariff contract package
sim phone card
roaming abroad foreign
loan borrow borrowed book
renew extend longer prolong
extend longer prolong
fine penalty fee
hold reserve
passport id document
waste rubbish garbage trash bin refuse collect
pothole hole road street damage
register enroll signup sign
enroll register join signup
permit licence license permission
dog pet animal cat
train rail railway
connection train next timetable
departure leave next
delay late delayed
platform track gate
season monthly pass
locker box
gym fitness studio
trainer coach
membership contract member
forecast weather tomorrow
recipe cook dish
ingredient food
serving portion people
lot painting item auction
exhibition display show
tour guide
title movie series
locate find near
damage scratch dent
prescription recipe
unlock open
exchange rate much
screenshot capture
tax duty
supplier vendor
reconcile match
match reconcile compare fit
record register note
store shop branch location
branch shop store office location
fit size suit
"""

PHRASES: Final = {
    "screenshot": "take picture|take photo|screen shot|screen capture|capture screen|capture page|see page|look page",
    "navigate": "go to|visit|open url|open page|open website|open site|open link|browse to|load page|load url|goto",
    "back": "previous page",
    "list tab": "which tab|what tab|show tab|my tab",
    "fulfill request": "mock response|fake response|stub response|mock request|mock api",
    "fail request": "block request|abort request|deny request",
    "list window": "which window|what window|open windows",
    "execute script": "run js|run javascript|run code|eval js|evaluate",
    "type text": "write into|enter text|input text",
    "fill form": "fill out|complete form",
    "press key": "hit enter|press enter|hit key|keyboard shortcut",
    "free busy slot": "when is|when are|is free|are free|availability",
    "pull request": "pr|merge request",
    "create event": "schedule meeting|schedule call|book meeting|set up meeting|plan meeting",
    "delete event": "cancel meeting|cancel event|cancel appointment",
    "mute": "do not disturb",
    "do not disturb snooze": "no notification|quiet hours|focus time",
    "snapshot": "accessibility tree|what is on page",
    "vacation responder out office": "auto reply|automatic reply|away message|on holiday|on vacation",
    "forward": "pass on|pass along|send on",
    "sign": "put signature",
    "signature": "mail footer|email footer|footer",
    "spam": "junk|junk mail",
    "direct message": "dm|private message|pm",
    "unread": "did miss|missed|catch up",
    "reaction": "thumb up|thumb down|emoji|smiley",
    "pin": "keep on top|on top|stick to top",
    "priority": "urgent|high priority|asap",
    "transition status": "set to done|mark done|mark as done|in progress|to done",
    "assign": "who should do|give to|responsible for|hand over",
    "subtask": "break into|smaller piece|split into|break down",
    "due date": "deadline|due on",
    "log work time": "hours worked|worked hour|time spent|spent hour",
    "balance": "how much money|money have|money on account|money in account",
    "refund": "money back|give back money|pay back",
    "payment link": "url to pay|page to pay|people pay|can pay",
    "overdue": "not paid|has not paid|hasn paid|who owe",
    "profit loss": "make money|made money|earn money|did earn",
    "quota storage": "space left|room left|how much space|how much room",
    "restore": "bring back|get back|undo|undelete|go back to|by accident|by mistake",
    "version": "last week version|earlier version|old version|previous version",
    "rename": "call something else|another name|different name|new name|call it",
    "share link": "link to send|link can send|get link|link for",
    "revoke": "no longer|not any more|stop sharing|take away access",
    "collaborator": "give access|access to repository|access to repo",
    "diff": "what changed|line by line|what change",
    "rerun": "once more|run again|try again|start again",
    "review": "sign off|look over",
    "attachment": "file that came|came with mail|file in mail",
    "internal note": "cannot see|can not see|can see|for colleague|customer not see",
    "escalate": "second level|next level|higher level",
    "forecast": "can expect|will make|do expect",
    "log call": "phone conversation|phone call|talked on phone",
    "lead": "prospect|potential customer",
    "abandoned": "did not buy|didn buy|left without|without buying",
    "fulfill ship": "left warehouse|sent out|on its way|has shipped",
    "price": "how much|what cost|what would cost",
    "fare estimate": "how much would|what would cost",
    "conditional format": "above red|color cells|highlight cells|make red",
    "transcript": "what was said|was said|who said",
    "participant": "who was in|who took part|who joined|who attended",
    "admit": "let in|let him in|let her in|let them in|is waiting",
    "on call": "on duty|duty tonight|who is on duty",
    "override shift": "take my shift|swap shift|cover shift|take over",
    "page person": "wake up|call out|get hold of",
    "rollback": "previous deploy|go back|last deploy|earlier deploy",
    "billing": "did spend|how much spend|what cost month",
    "resize": "make bigger|make smaller|more memory|more cpu|machine bigger",
    "export": "as png|as pdf|as csv|into pdf|into csv|download as",
    "remove background": "cut out background|without background",
    "post": "tweet|share on|put on wall",
    "schedule": "at nine|at eight|later|tomorrow at|next week at",
    "trend": "talk about|talking about|what is hot|popular topic",
    "insight": "how did do|reach and like|how well|how many like",
    "now playing": "what song|which song|song is this|song is playing",
    "next track": "skip song|skip this|next song",
    "volume": "turn down|turn up|louder|quieter|music down|music up",
    "check in": "online check in|checkin|boarding pass",
    "claim compensation": "want compensation|money for delay|flight cancelled|flight was cancelled",
    "request ride": "get me car|order car|need taxi|call taxi|get car",
    "lost item": "left in car|left my|forgot my|left something",
    "reorder": "same as last|as last time|same again|order again",
    "freeze block": "block for now|lost card|lost my card|card was stolen|stolen",
    "exchange rate": "how many dollar|how many euro|get for euro|get for dollar",
    "leave": "day off|time off|days off",
    "leave request": "ask for vacation|take vacation|want vacation|request vacation|want holiday",
    "report sick": "ill today|am ill|am sick|feel sick",
    "org chart": "who is boss|boss of|reports to|who report",
    "reject": "turn down|say no",
    "campaign report": "how many open|people opened|open rate|click rate",
    "remind signer": "not signed|has not signed|nudge",
    "send signature": "so that sign|get signed|have signed|to sign",
    "direction": "how do get|how get|get from|way to",
    "nearby": "around here|near me|near here|close by",
    "temperature": "make warmer|make colder|warmer|colder|too cold|too warm",
    "turn light": "switch on light|lights on|switch off light|light on",
    "camera": "at door|who is there",
    "deadline": "what is due|due this week|is due",
    "today": "on my list|list for today|to do today",
    "track": "where is|where are|when does arrive",
    "add cart": "into basket|in basket|into cart|in cart|put in bag|into bag",
    "voucher": "discount code|promo code|coupon code|gift code",
    "checkout": "pay now|buy now|place order|order now",
    "return": "send back|does not fit|doesn fit|don fit|bring back item",
    "store stock": "have it in shop|in shop|in store|do they have",
    "change booking": "fly later|fly earlier|day later|other flight|another day",
    "luggage baggage": "one more suitcase|more bags",
    "flight status": "on time|is delayed|flight late",
    "availability": "room for|night for|nights for|free room",
    "shuttle": "collect at airport|pick up at airport|from airport",
    "transfer": "send rent|pay rent|send money|pay landlord|send euro|send dollar",
    "data usage": "how many gigabyte|data left|data used|gb left",
    "report outage": "internet is down|no internet|is down|does not work",
    "report claim": "broke window|had accident|tell insurance|something broke",
    "prescription": "pills again|need pills|need medicine|medicine again|more pills",
    "showtime": "what is on|what film|film are playing|playing tonight|playing today",
    "reserve table": "table for",
    "apply": "send cv|send my cv|send resume",
    "viewing": "look at flat|look at house|see flat|see house|have look",
    "renew": "keep longer|weeks longer|keep my book",
    "absence": "stay home|stays at home|not come to school|is sick",
    "waste calendar": "rubbish collected|bins collected|garbage collected|when is rubbish",
    "pothole": "hole in road|hole in street",
    "meter reading": "number on counter|electricity counter|gas counter|meter number",
    "connection": "next train|train to|trains to|next bus",
    "delay": "was late|hours late|too late|minutes late",
    "redirect": "to neighbour|another address|other address|bring to neighbour",
    "class": "yoga|pilates|zumba|spinning",
    "forecast weather": "will it rain|will rain|will snow|rain tomorrow|how warm",
    "bid": "offer more|euros more|dollars more|pay more",
    "unlock": "open car|open door|let me into",
    "interaction": "take together|drugs together|pills together",
    "uptime": "was available|is it up",
    "get file": "read readme|readme|content of file",
    "job log": "show output|its output|why fail|why did fail|log output",
    "build log": "why break|build break|build failed|why did build",
    "protect branch": "may push|nobody push|push to main|direct push",
    "search": "look for|search for|where is the",
    "get": "show me|let me see|give me",
    "list": "which|what",
    "create": "set up|open a|start a",
    "history": "price before|earlier price",
}
