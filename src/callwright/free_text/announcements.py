"""How a model announces that it acts now, in the languages that models mostly write: `I'll look that up.`

An announcement is one clause. It begins with an opening of an act (`I'll`, `Ich werde`, `我来`), then comes a verb of
doing. The lists allow, and what is missing in them costs a question, never a call: verbs of saying and showing (`show`,
`explain`, `wait`) are left out on purpose. Where the verb stands last in its clause, as in Japanese, it is looked for
there.
"""

from typing import Final, NamedTuple

__all__ = ["BREAKS", "INTERJECTIONS", "LANGUAGES", "WAITS", "Language"]


class Language(NamedTuple):
    """`opening` stands at the start of the clause, `act` right behind it. `breaks` make it no announcement: a negation,
    a condition or the begin of a second clause, a habit, and what is shown instead of done. All are regular expressions
    for lower-case text, compiled by whoever needs them: most answers need none.
    """

    opening: str
    act: str
    breaks: str


def _any(*words: str) -> str:
    return "(?:" + "|".join("|".join(line.split()) for line in words) + ")"


def _words(opening: str, fillers: str, acts: str, breaks: str, *, last: bool = False) -> Language:
    """A language with blanks between words. `last`: the act may stand at the end of the clause."""
    gap = rf"(?:(?:{fillers}) |(?!))*+"
    act = rf"{gap}{acts}\b" + (rf"|(?:.* )?\w{{0,6}}{acts}\Z" if last else "")
    return Language(rf"(?:{opening}) ", act, rf"\b(?:{breaks})\b")


# They may stand before the clause, and are none.
INTERJECTIONS: Final = (
    r"(?:(?:sure(?: thing)?|ok(?:ay)?|al(?:l )?right|of course|certainly|absolutely|great|perfect|right|yes|well"
    r"|understood|got it|no problem|gladly|klar|gut|natürlich|gerne?|alles klar|verstanden|ja|bien sûr|d'accord|oui"
    r"|très bien|parfait|compris|claro|vale|por supuesto|sí|de acuerdo|entendido|muy bien|perfecto|certo|va bene|sì"
    r"|d'accordo|perfetto|com certeza|sim|está bem|entendi|natuurlijk|prima|goed|goed dan|zeker|självklart|visst"
    r"|absolut|javisst|oczywiście|jasne|dobrze|tak|конечно|хорошо|ладно|да|понял|поняла|tabii(?: ki)?|tamam|elbette"
    r"|baik|tentu|được|vâng|好的?|好嘞|当然(?:可以)?|没问题|明白(?:了)?|收到|可以|はい|わかりました|分かりました|承知(?:しま|いたしま)した|かしこまりました|了解(?:です"
    r"|しました)?|네|알겠습니다|물론(?:입니다|이죠)?|좋습니다|حسنا|بالتأكيد|बिल्कुल|ठीक है|ज़रूर)"
    r"(?:[,，、.!。！] ?| [-–—] |(?= )))+ ?"
)
# They stand alone, or behind the clause.
WAITS: Final = (
    r"(?:[,，、.] ?|\A)(?:(?:just )?(?:a|one) (?:moment|second|sec|minute)|hold on|please wait|(?:einen "
    r"|kleinen )?moment|einen augenblick|un instant|un moment|un momento|um momento|um instante|un attimo|een moment"
    r"|ett ögonblick|chwileczkę|chwilę|(?:одну )?(?:минуту|секунду|минутку|секундочку)|bir (?:saniye|dakika)|sebentar"
    r"|mohon tunggu|xin chờ(?: một chút)?|请?稍[等候](?:一下|片刻)?|少々お待ちください|お待ちください"
    r"|잠시만(?: 기다려 주세요)?|لحظة)(?:,? (?:please|bitte|s'il (?:vous|te) plaît|por favor|per favore"
    r"|alstublieft|tack|proszę|пожалуйста|lütfen|من فضلك))?\Z"
)
# The clause ends here, and another begins.
BREAKS: Final = r"[.!?:,;…](?=\s)|[?？؟。！：，；、।\n—–]| - "

_ENGLISH_BASE: Final = _any(
    "analyze analyse examine inspect review compare monitor summarize transfer",
    "check look find search fetch roll get read open load list query run execute call invoke use send email mail",
    "delete",
    "remove clean clear create add store update edit change set turn switch restart launch book reserve",
    "order buy schedule cancel move copy rename upload download import export convert translate calculate compute",
    "count measure verify validate test try do proceed continue retrieve pull grab gather collect scan browse visit",
    "access connect track build compile install deploy commit push merge fix apply patch replace insert append sort",
    "filter post publish submit notify forward dispatch trigger perform consult enable disable fill ping generate",
    "adjust determine identify locate investigate handle",
    # Phrases of saying begin with these, too: `make it clear`, `start with the form`, `write it down`.
    "take#a#(?:quick#|closer#)?look (?:start|begin|close)(?!#with) save(?!#you) write(?!#it) make#(?:the"
    "|a)#(?:booking|call)",
    "see\\Z help#(?:you#)?with#(?:that|this|it)",
).replace("#", " ")
_ENGLISH_ING: Final = _any(
    "analyzing analysing examining inspecting reviewing computing comparing investigating fixing installing",
    "checking looking finding searching fetching getting reading opening loading listing querying running executing",
    "calling invoking using sending deleting removing cleaning clearing creating making adding saving updating",
    "editing",
    "changing setting setting turning starting restarting launching booking reserving ordering scheduling cancelling",
    "moving copying writing filling uploading downloading converting calculating verifying testing retrieving",
    "pulling gathering",
    "scanning",
)
_ENGLISH_FILLERS: Final = (
    "now|just|quickly|first|then|next|also|go ahead and|try to|help you(?! with)|quick(?:ly)?|right away|start by"
)
_ENGLISH_BREAKS: Final = (
    r"i|not|\w+n't|cannot|never|no|nor|none|nothing|nobody|neither|nowhere|hardly|barely|scarcely|seldom|rarely"
    r"|short of|avoid\w*|refrain\w*|abstain\w*|withh\w+|ceas\w+|stop\w* (?:short|here|there|now|at|right|\w+ing)"
    r"|skip\w*|declin\w*|refus\w*|postpon\w*"
    r"|defer\w*|delay\w*|prevent\w*|hold\w*|(?:call|put) (?:\w+ )?off|turn (?:\w+ )*down|tomorrow|tonight|soon"
    r"|shortly|later on|in due|in the meantime"
    r"|in (?:an?|a few|some|\d+) (?:\w+ )?(?:bit|while|minutes?|hours?|days?|weeks?|months?)|in the (?:morning|evening)"
    r"|next (?:time|week|month|year|\w+day)|(?:on|by|this) \w+(?:day|noon|evening)|the (?:moment|minute|day|instant)"
    r"|you (?:say|agree|approve|ask|tell|want|wish|like|decide)|your (?:ok\w*|word|go|decision|answer|reply|sign\w*)"
    r"|without|instead|rather|only|if|when|whenever|once|unless|until|till"
    r"|after|before|whether|while|because|since|although|though|but|or|else|as|like|how|what|which|who|whose|why"
    r"|where|would|could|might|assuming|provided|pending|upon|later|afterwards|eventually|someday|usually|normally"
    r"|always|every|examples?|samples?|e\.g|demo\w*|format|syntax|placeholders?|hypothetical\w*|illustrat\w+|pretend"
    r"|json|words?|aside|reference|similar|something|such|nightly|daily|weekly|monthly|often|sometimes|typically"
    r"|permission|approval|consent|confirm\w*|straight|(?:with|by|past|back to) you|you through|run through|the form"
)

_GERMAN_INFINITIVE: Final = _any(
    "prüfen überprüfen nachsehen nachschauen ansehen anschauen schauen sehen suchen nachschlagen rufen aufrufen",
    "abrufen",
    "holen lesen öffnen löschen entfernen senden schicken starten ausführen erstellen anlegen schreiben",
    "speichern",
    "auflisten abfragen ermitteln nutzen verwenden benutzen aufräumen bereinigen säubern buchen reservieren setzen",
    "ändern",
    "einschalten ausschalten laden herunterladen hochladen verschieben kopieren berechnen umrechnen machen",
    "erledigen durchführen durchsuchen kontrollieren testen leeren aktualisieren finden",
)
_GERMAN_PRESENT: Final = _any(
    "prüfe überprüfe schaue schau sehe suche rufe hole lese öffne lösche entferne sende schicke starte führe",
    "erstelle lege schreibe speichere liste frage ermittle nutze verwende benutze räume bereinige säubere buche",
    "reserviere",
    "setze ändere schalte lade verschiebe kopiere berechne mache erledige durchsuche kontrolliere teste leere",
    "aktualisiere finde schlage kümmere",
)
_GERMAN_BREAKS: Final = (
    r"\b(?:nicht|nichts|kein\w*|nie|niemals|niemand\w*|nirgend\w*|weder|kaum|selten|erst|morgen|übermorgen"
    r"|heute (?:abend|nacht)|bald|demnächst|in (?:\w+ )?(?:kürze|minuten?|stunden?|tagen?|wochen?)|nächste\w*|davon"
    r"|beiseite|zurück|hier\Z|verzicht\w*|unterlass\w*|vermeide\w*|weigere|ohne|statt|nur|wenn|falls|sobald|bevor"
    r"|nachdem|bis|ob|dass|weil|da|aber|oder"
    r"|sondern|wie|was|würde|könnte|später|so|nach (?:ihrer|deiner|eurer)|freigabe|beispiel\w*|muster|format"
    r"|erlaubnis|zustimmung|bestätigung|immer|jede\w*|normalerweise|täglich)\b"
)
_FRENCH: Final = _any(
    "vérifi(?:er|e) (?:re)?cherch(?:er|e) regard(?:er|e) consult(?:er|e) lanc(?:er|e) exécut(?:er|e) appel(?:er|le)",
    "utilis(?:er|e) envo(?:yer|ie) supprim(?:er|e) effac(?:er|e) lire lis ouvr(?:ir|e) cré(?:er|e) list(?:er|e)",
    "récup(?:érer|ère) obten(?:ir) obtiens netto(?:yer|ie) réserv(?:er|e) modifi(?:er|e) mettre mets télécharg(?:er|e)",
    "faire fais démarr(?:er|e) enregistr(?:er|e) calcul(?:er|e) convert(?:ir|is) trouv(?:er|e) écrire",
    "occup(?:er|e) procéd(?:er) procède interrog(?:er|e) effectu(?:er|e)",
)
_SPANISH: Final = _any(
    "buscar\\w* consultar\\w* revisar\\w* comprobar\\w* verificar\\w* ejecutar\\w* llamar\\w* usar\\w* utilizar\\w*",
    "enviar\\w* eliminar\\w* borrar\\w* leer\\w* abrir\\w* crear\\w* listar\\w* limpiar\\w* reservar\\w* lanzar\\w*",
    "mirar\\w* obtener\\w* iniciar\\w* guardar\\w* escribir\\w* calcular\\w* hacer\\w* encontrar\\w* ver",
)
_SPANISH_PRESENT: Final = _any(
    "busco consulto reviso compruebo verifico ejecuto llamo utilizo envío elimino borro leo abro limpio reservo lanzo",
    "miro obtengo guardo escribo calculo hago",
)
_PORTUGUESE: Final = _any(
    "buscar\\w* procurar pesquisar consultar verificar checar conferir executar rodar chamar usar utilizar enviar",
    "excluir apagar deletar remover ler abrir criar listar limpar reservar iniciar salvar obter calcular fazer",
    "ver",
)
_ITALIAN: Final = _any(
    "control\\w+ verific\\w+ cerc\\w+ esegu\\w+ chiam\\w+ invi\\w+ mand\\w+ elimin\\w+ cancell\\w+ legg\\w+ apr\\w+",
    "lanci\\w+ us\\w+ utilizz\\w+ consult\\w+ cre\\w+ avvi\\w+ pulisc\\w+ pulir\\w+ prenot\\w+ salv\\w+",
    "recuper\\w+",
    "otten\\w+ guard\\w+ fare faccio vedere",
)
_ITALIAN_PRESENT: Final = _any(
    "verifico cerco eseguo chiamo elimino leggo apro prenoto ottengo guardo pulisco aggiorno",
    "(?:controllo|invio|avvio|lancio|salvo|uso)(?=#(?:il|lo|la|i|gli|le|un|una|subito|ora|adesso)\\b|#l')",
).replace("#", " ")
# `Elimino` is Spanish and Italian: what says that nothing is done now is looked for in these languages together.
_ROMANCE_NONE: Final = (
    r"nada|nadie|ningun\w*|ningún|nunca|jamás|ni|tampoco|todavía|aún|mañana|pronto|luego|apenas|dentro de|evit\w+"
    r"|rechaz\w+|niego|não|jamais|ninguém|nenhum\w*|nem|tampouco|ainda|amanhã|logo|em breve|daqui a|recus\w+|non|mai"
    r"|niente|nulla|nessun\w*|né|neanche|nemmeno|neppure|domani|presto|stasera|appena|ancora|fra|tra|rifiut\w+"
)
_DUTCH: Final = _any(
    "controleren? nakijken kijken? kijk zoeken? zoek opzoeken uitvoeren voer aanroepen roep gebruiken gebruik",
    "versturen",
    "verstuur sturen stuur verwijderen verwijder lezen lees openen open maken maak ophalen haal starten start",
    "opruimen ruim boeken boek reserveren opslaan controleer checken check",
)
_SWEDISH: Final = _any(
    "kontrollerar? kollar? söker? köra kör anropar? använda använder skickar? ta tar bort raderar? läsa läser öppnar?",
    "hämtar? startar? skapar? rensar? bokar? sparar? slå slår leta letar titta tittar",
)
_POLISH: Final = _any(
    "sprawdzę sprawdzam sprawdzić wyszukam wyszukuję poszukam znajdę uruchomię uruchamiam wykonam wykonuję usunę",
    "usuwam",
    "wyślę wysyłam wywołam wywołuję użyję używam otworzę otwieram pobiorę pobieram przeczytam utworzę zarezerwuję",
    "wyczyszczę",
    "zapiszę",
)
_RUSSIAN: Final = _any(
    "проверю проверить проверяю посмотрю посмотреть смотрю найду найти поищу ищу выполню выполнить выполняю запущу",
    "запускаю запустить вызову вызываю вызвать отправлю отправляю отправить удалю удаляю удалить прочитаю прочту",
    "открою",
    "открываю получу получаю узнаю использую очищу очищаю создам создаю запрошу запрашиваю забронирую сохраню",
    "сделаю воспользуюсь",
)
_TURKISH: Final = _any(
    "kontrol#ed(?:iyorum|eceğim|eyim) bak(?:ıyorum|acağım|ayım) ar(?:ıyorum|ayacağım|ayayım) çalıştır(?:ıyorum"
    "|acağım|ayım)",
    "gönder(?:iyorum|eceğim|eyim) sil(?:iyorum|eceğim|eyim) çağır(?:ıyorum|acağım) kullan(?:ıyorum"
    "|acağım) aç(?:ıyorum|acağım)",
    "oku(?:yorum|yacağım) temizl(?:iyorum|eyeceğim|eyeyim) sorgul(?:uyorum|ayacağım|ayayım) al(?:ıyorum|acağım)",
).replace("#", " ")
_CHINESE: Final = (
    r"(?:现在|马上|立即|立刻|先|就|来|会|将|去|要|需要|想|帮忙|[帮为给][您你]|[帮为给]|再|直接|尝试|试着|这就|通过[^，]{1,30}?|用[^，]{1,30}?){0,6}?(?:查|找|搜|看看"
    r"|看一|检查|检索|运行|执行|调用|使用|用|发送|发邮件|发一|发个|删|移除|读取|打开|获取|创建|写入|列出|清理|清除|更新|启动|预订|预定|下载|上传|计算|保存|处理|访问|测试|确认"
    r"|把[^，]{1,20}?(?:删|移|发|打开|关|清|存))"
)
_JAPANESE: Final = (
    r"(?:.*(?:確認|検索|実行|取得|送信|削除|作成|使用|利用|起動|予約|更新|保存|計算|チェック|お調べ|クリーンアップ|消去|掃除|照会|開始)(?:を?(?:し|いたし|行い|して(?:み|い"
    r"|いき))|して(?:み|い))?ます|.*(?:調べ|見|探し|読み込み|読み|開き|送り|消し|使い|呼び出し|実行し|調べて(?:み|い)|見て(?:み|い)|探して(?:み|い))ます)ね?\Z"
)
_KOREAN: Final = (
    r"(?:.*(?:확인|검색|조회|실행|호출|전송|발송|삭제|사용|시작|예약|생성|저장|정리|처리|계산)(?:을|를)?\s?(?:해\s?(?:보겠습니다|볼게요|드리겠습니다|드릴게요)|하겠습니다"
    r"|할게요)|.*(?:찾아|살펴|알아)\s?(?:보겠습니다|볼게요)|.*(?:보내|열|읽|지우)겠습니다)\Z"
)
_ARABIC: Final = _any(
    "[أا]?تحقق [أا]?بحث [أا]?رسل [أا]?حذف [أا]?قوم [أا]?ستخدم [أا]?شغل [أا]?نفذ [أا]?ستدعي [أا]?فتح [أا]?قر[أا]",
    "[أا]?جلب",
    "[أا]?حصل [أا]?نظف",
)
_INDONESIAN: Final = _any(
    "memeriksa mencari menjalankan mengirim(?:kan)? menghapus memanggil menggunakan membuka membaca mengambil melihat",
    "mengecek membuat membersihkan memesan menyimpan cek periksa cari jalankan kirim(?:kan)? hapus panggil gunakan",
    "ambil lihat",
)
_VIETNAMESE: Final = _any(
    "kiểm#tra tìm#kiếm tìm chạy gửi xóa xoá gọi dùng sử#dụng mở đọc lấy tra#cứu xem thực#hiện dọn lưu đặt"
).replace("#", " ")
_HINDI: Final = (
    r".*(?:देख|जाँच|जांच|खोज|चला|भेज|हटा|पढ़|खोल|कर|बुला)(?:ता|ती)? ?(?:\w+ )?(?:हूँ|हूं|ूँगा|ूँगी|ूंगा|ूंगी|ऊँगा"
    r"|ऊँगी|ऊंगा|ऊंगी|रहा हूँ|रही हूँ)\Z"
)

LANGUAGES: Final = (
    _words(  # English
        r"i'll|i will|i need to|i(?:'m| am) (?:now )?going to|i(?:'m| am) about to|(?:now,? |first,? |next,? "
        r"|then,? )?let me|(?:now|next|first|then) i|(?:now|next|first|then),? i(?:'ll| will)|(?:now|next|first"
        r"|then),? i(?:'m| am) going to",
        _ENGLISH_FILLERS,
        _ENGLISH_BASE,
        _ENGLISH_BREAKS,
    ),
    _words(r"(?:now,? )?i(?:'m| am)|now", _ENGLISH_FILLERS, _ENGLISH_ING, _ENGLISH_BREAKS),
    _words("i", _ENGLISH_FILLERS, rf"(?!use|set|read|call){_ENGLISH_BASE}", _ENGLISH_BREAKS),
    # A heading may begin so, too: only what ends as a sentence does, and is as short as one without a subject.
    Language(
        "",
        rf"{_ENGLISH_ING}(?:(?: up| out| for| into)?(?: it| that| them| (?:the|your) [\w-]+)?(?: first| for you)?"
        r"|.* now| now)\Z",
        rf":\Z(?<! now:)|\b(?:is|are|was|were|will|would|{_ENGLISH_BREAKS})\b",
    ),
    Language(  # German: the verb last
        r"(?:(?:jetzt|nun|zuerst|zunächst|dann) )?(?:ich werde|werde ich|lass(?:en sie)? mich) ",
        rf"(?:.* )?{_GERMAN_INFINITIVE}\Z",
        _GERMAN_BREAKS,
    ),
    Language(  # German
        r"(?:ich|(?:jetzt|nun|zuerst|zunächst|dann)(?= \w+ ich\b)) ",
        rf"{_GERMAN_PRESENT}\b",
        _GERMAN_BREAKS,
    ),
    Language(  # French
        r"(?:(?:maintenant|d'abord|ensuite),? )?(?:je vais |laissez?-moi |permett(?:ez|s)-moi d(?:e |')"
        r"|je suis en train d(?:e |')|je (?!vais )|j')",
        r"(?:(?:le|la|les|vous|te|lui|y|maintenant|d'abord|tout de suite|donc|me|m'en) |(?!))*+"
        rf"(?:[ldym]')?{_FRENCH}\b",
        r"\b(?:ne|n'\w+|ni|pas|rien|personne|aucune?|nulle|guère|jamais|demain|bientôt|ce soir|dans (?:une?"
        r"|\w+) (?:heures?"
        r"|minutes?|jours?|moment|instant)|m'abst\w+|évit\w+|refus\w+|renonc\w+|sans|si|s'il|quand|lorsque|dès|après"
        r"|avant|jusqu'\w+|mais|ou|comme|comment|que"
        r"|qu'\w+|ce qui|plus tard|par exemple|exemples?|modèle|format|permission|accord|confirm\w*|toujours|chaque"
        r"|habitude|souvent|seulement)\b",
    ),
    _words(  # Spanish: with a helping verb
        r"(?:(?:ahora|primero|entonces) )?(?:yo )?(?:voy a|vamos a|d[ée]ja?[mj]e\w*|déjeme|permíta?me|permíteme"
        r"|estoy por|procedo a)",
        "ahora|primero|rápidamente",
        _SPANISH,
        rf"{_ROMANCE_NONE}|no|sin|si|cuando|después|antes|hasta|pero|o|como|cómo|que|qué|lo que|más tarde"
        r"|ejemplos?"
        r"|muestra|formato|permiso|confirm\w*|siempre|cada|normalmente|solo|sólo",
    ),
    Language(  # the verb says who acts
        r"(?:(?:ahora|primero|entonces|yo) )?(?:mismo )?(?:(?:lo|la|los|las|te|le) |(?!))*+",
        rf"(?:{_SPANISH_PRESENT}|(?:buscar|consultar|revisar|comprobar|verificar|ejecutar|llamar|usar|enviar|eliminar"
        r"|borrar|leer|abrir|limpiar|reservar)é)\b(?! de\b)",
        rf"\b(?:{_ROMANCE_NONE}|no|sin|si|cuando|después|antes|hasta|pero|o|como|cómo|que|qué|más tarde"
        r"|así|ejemplos?"
        r"|muestra|formato|permiso|confirm\w*|siempre|cada|normalmente|solo|sólo)\b",
    ),
    _words(  # Portuguese
        r"(?:(?:agora|primeiro) )?(?:eu )?(?:vou|deixe-me|deixa eu|permita-me)",
        "agora|primeiro|rapidamente|te|lhe",
        _PORTUGUESE,
        rf"{_ROMANCE_NONE}|sem|se|quando|depois|antes|até|mas|ou|como|que|o que|mais tarde|exemplos?|modelo|formato"
        r"|permissão|confirm\w*|sempre|cada|só",
    ),
    _words(  # Italian: with a helping verb
        r"(?:ora|adesso|prima)|(?:ora |adesso )?(?:lascia(?:mi|temi)|fammi|mi lasci|sto per|vado a|procedo a|io)",
        "ora|adesso|subito|lo|la|li|le",
        _ITALIAN,
        rf"{_ROMANCE_NONE}|senza|se|quando|dopo|prima di|finché|ma|o|oppure|come|che|cosa|più tardi|esempi\w*|modello"
        r"|formato"
        r"|permesso|conferm\w*|sempre|ogni|solo",
    ),
    Language(  # Italian: the verb says who acts
        "",
        rf"{_ITALIAN_PRESENT}\b",
        rf"\b(?:{_ROMANCE_NONE}|senza|se|quando|dopo|prima di|finché|ma|o|oppure|come|che|cosa|più tardi|esempi\w*"
        r"|modello"
        r"|formato|permesso|conferm\w*|così|sempre|ogni|solo)\b",
    ),
    _words(  # Dutch
        r"(?:(?:nu|eerst) )?(?:ik ga|ik zal|laat (?:me|mij)|ga ik|zal ik|ik)",
        "nu|eerst|even",
        _DUTCH,
        r"niet|niets|niks|niemand|nergens|geen|geenszins|noch|evenmin|pas|amper|nauwelijks|morgen|overmorgen|straks"
        r"|binnenkort|vanavond|over (?:een|\w+) (?:uur|minuten|dagen)|vermijd\w*|weiger\w*|nooit|zonder|als|wanneer"
        r"|zodra|nadat|voordat|tot|of|dat|omdat|maar|hoe|wat|zoals|later"
        r"|voorbeeld\w*|formaat|toestemming|bevestig\w*|altijd|elke|alleen|zou",
        last=True,
    ),
    _words(  # Swedish
        r"(?:nu )?(?:jag ska|jag kommer att|jag tänker|låt mig|jag|ska jag)",
        "nu|först|bara",
        _SWEDISH,
        r"inte|inget|ingenting|varken|aldrig|ingen|inga|knappt|imorgon|i morgon|ikväll|i kväll|snart|senast|undvik\w*"
        r"|först (?:i|på|när|om|efter)|avstå\w*|utan|om|när|efter|innan|tills|men|eller|hur|vad|som|senare|exempel\w*"
        r"|format"
        r"|tillåtelse|bekräft\w*|alltid|varje|skulle|bara",
    ),
    Language(  # Polish
        r"(?:(?:teraz|zaraz|najpierw|już|ja) |(?!))*+",
        rf"{_POLISH}\b",
        r"\b(?:nie|nic|nikt|nikogo|nigdzie|ani|żad\w+|dopiero|jeszcze|jutro|wkrótce|wieczorem|nigdy|bez|jeśli|jeżeli"
        r"|gdy|kiedy|po tym|przed|zanim|aż|ale|lub|albo|jak|co|że|później|przykład\w*"
        r"|format\w*|zgod\w+|potwierdz\w*|zawsze|każd\w+|by)\b",
    ),
    Language(  # Russian
        r"(?:(?:я|сейчас|теперь|сначала|давайте|давай|позвольте(?: мне)?|мне нужно) |(?!))*+(?:это )?",
        rf"{_RUSSIAN}\b",
        r"\b(?:не|нет|ничего|никого|никто|нигде|ни|лишь|едва|завтра|скоро|вечером|через|никогда|без|если|когда|после"
        r"|перед|пока|прежде|но|или|либо|как|что|чтобы|потом|позже|пример\w*"
        r"|образ\w*|формат\w*|разрешени\w*|подтвер\w*|всегда|кажд\w+|обычно|бы|только)\b",
    ),
    Language(  # Turkish
        r"(?:şimdi |hemen |önce |ben )?",
        rf".*{_TURKISH}\Z",
        r"\b(?:değil|asla|hiç\w*|ne|kimse\w*|henüz|yarın|birazdan|yakında|eğer|zaman|sonra|önce|kadar|ama|veya|ya da"
        r"|gibi|nasıl|örne\w+|biçim\w*|format\w*|izin\w*"
        r"|onay\w*|her|sadece|genellikle)\b|\w+(?:sanız|seniz|sa|se)\b",
    ),
    Language(  # Chinese
        r"(?:那么?|现在|接下来|首先|首先让|下面)?[，,]?\s?(?:我来|我去|我将|我会|我现在|我先|我这就|我马上|我要|我帮|我为|我用|我正在|让我|正在|马上|我)(?=\S)",
        _CHINESE,
        r"不|没|别|未|无|勿|莫|停止|暂|拒|避免|放弃|才|明[天早日晚]|今晚|下[次周月]|改[天日]|稍[后候]再|晚[点些]|回头|如果|若|假如|等[您你到]|之前|以前|之后|后|(?<!通)过"
        r"|(?<!为)了|已|但|或|例|可以|可能|拒绝|应该|展示|演示|示范|说明|解释|格式|模板|怎|如[何下]|什么"
        r"|[这那]样|的话|同意|允许|许可|批准|确认(?=后|再)|每|通常|总是|只|曾",
    ),
    Language(  # Japanese
        r"(?:(?:では|それでは|まず|次に|今から|これから|私が|早速)、?)?(?:私は)?",
        _JAPANESE,
        r"例|ません|ない|ずに|せず|何も|誰も|まだ|やめ|控え|中止|保留|見送|明日|今夜|来[週月]|後ほど|場合|たら|れば|なら|後|前に|ので|から[、]|毎|いつも|通常|ように|形式|書式|必要|許可"
        r"|承認|ください|という|と書|あなた|は(?!い)|が|サンプル|だけ",
    ),
    Language(  # Korean
        r"(?:제가|지금|먼저|바로|이제)?\s?",
        _KOREAN,
        r"않|안 |못|아무|아직|내일|나중|이따|다음에|없|만약|다면|으면|면 |후에|뒤에|전에|예시|예를|예제|형식"
        r"|하지만|또는|어떻게|처럼|설명|허락|승인|항상|매번|은 |는 |만 ",
    ),
    Language(  # Arabic
        r"(?:الآن )?(?:سوف |دعني |س)",
        rf"{_ARABIC}\w*",
        r"(?:\A|\s)(?:لن|لا|لم|ليس|لست|أبد\w*|شيئ\w*|غد[اًا]*|لاحق\w*|قريب\w*|بدون|إذا|اذا|مثال\w*|بعد|قبل|عندما|لكن"
        r"|أو|شكل|صيغة|كيف|مثل|فقط|كل)(?:\s|\Z)",
    ),
    _words(  # Indonesian
        r"(?:sekarang )?(?:saya akan|biar(?:kan)? saya|izinkan saya|saya)",
        "segera|dulu|sekarang|coba",
        _INDONESIAN,
        r"tidak|tak|bukan|apa pun|apapun|siapa pun|besok|nanti|kelak|menghindari|menunda|menolak|jangan|tanpa|jika"
        r"|kalau|bila|ketika|setelah|sebelum|sampai|contoh\w*|tetapi|tapi|atau|seperti"
        r"|cara|bagaimana|format|belum|izin|konfirmasi|hanya|selalu|setiap|yang",
    ),
    _words(  # Vietnamese
        r"(?:bây giờ )?(?:tôi sẽ|để tôi|mình sẽ|để mình|tôi đang|hãy để tôi)",
        "ngay|thử",
        _VIETNAMESE,
        r"không|chưa|chẳng|chả|ngày mai|lát nữa|tránh|hoãn|ngừng|từ chối|đừng|nếu|khi|sau|trước|ví dụ|nhưng|hoặc|như"
        r"|cách|mẫu|định dạng|xác nhận|cho phép|chỉ|luôn|mỗi",
    ),
    Language(  # Hindi
        r"(?:अब |अभी |पहले )?(?:मैं|मुझे) ",
        _HINDI,
        r"(?:\A|\s)(?:नहीं|न|ना|मत|कुछ|कोई|कल|कभी|बिना|अगर|यदि|जब|बाद|पहले|लेकिन|या|उदाहरण|कैसे|जैसे|प्रारूप|सिर्फ"
        r"|हमेशा)(?:\s|\Z)",
    ),
    Language(  # Danish and Norwegian
        r"(?:nå |nu )?(?:jeg (?:skal |vil |kommer til å )?(?:nå |nu |lige |bare )?|la meg |lad mig |lar meg )",
        r"(?:sjekke[r]?|tjekke[r]?|kontrollere[r]?|søke[r]?|søge[r]?|slette[r]?|sende[r]?|hente[r]?|kjøre[r]?"
        r"|køre[r]?|kalle[r]?|kalde[r]?|bruke[r]?|bruge[r]?|åpne[r]?|åbne[r]?|starte[r]?|lese[r]?|læse[r]?"
        r"|opprette[r]?|oprette[r]?|slå[r]? opp|slå[r]? op|utføre[r]?|udføre[r]?|fjerne[r]?)\b",
        r"\b(?:ikke|aldri|aldrig|intet|ingenting|hverken|verken|knapt|først|snart|i morgen|i kveld|i aften|unngå\w*"
        r"|undgå\w*"
        r"|avstå\w*|ingen|uten|uden|hvis|om|når|etter|efter|før|til du|men|eller|hvordan|hva|hvad|som"
        r"|slik|sådan|senere|eksempel\w*|format|tillatelse|tilladelse|bekreft\w*|bekræft\w*|alltid|altid|hver|ville"
        r"|bare)\b",
    ),
    Language(  # Ukrainian
        r"(?:(?:я|зараз|тепер|спочатку|давайте|дозвольте) |(?!))*+",
        r"(?:перевірю|перевіряю|подивлюся|подивлюсь|знайду|пошукаю|шукаю|виконаю|виконую|запущу|запускаю|викличу"
        r"|надішлю|надсилаю|видалю|видаляю|прочитаю|відкрию|отримаю|дізнаюся|використаю|очищу|створю)\b",
        r"\b(?:не|ні|нічого|нікого|ніхто|ніде|жодн\w+|ані|лише|завтра|скоро|згодом|увечері|через|ніколи|без|якщо|коли"
        r"|після|перед|поки|але|або|чи|як|що|щоб|потім|пізніше|приклад\w*|формат\w*"
        r"|дозв\w*|підтвер\w*|завжди|кож\w+|зазвичай|би|тільки)\b",
    ),
    Language(  # Czech
        r"(?:(?:teď|nyní|hned|nejprve|já) |(?!))*+",
        r"(?:zkontroluji|zkontroluju|ověřím|podívám se|vyhledám|najdu|spustím|spouštím|provedu|smažu|mažu|odstraním"
        r"|pošlu|posílám|odešlu|zavolám|použiji|použiju|otevřu|přečtu|získám|vytvořím|vyčistím)\b",
        r"\b(?:ne\w*|nic|nikdo|nikoho|nikde|žádn\w+|ani|teprve|ještě|zítra|brzy|večer|nikdy|bez|pokud|jestli|když|až"
        r"|po tom|před|dokud|ale|nebo|jak|co|že|později|příklad\w*|formát\w*"
        r"|souhlas\w*|potvr\w*|vždy|každ\w+|bych|jen)\b",
    ),
    Language(  # Romanian
        r"(?:acum )?(?:eu )?(?:voi |o să |lasă-mă să |lăsați-mă să )",
        r"(?:verific[aă]?|caut|căuta|șterg|șterge|trimit|trimite|execut[aă]?|rulez|rula|apel[ae]z?|folosi|folosesc"
        r"|deschid[e]?|citi|citesc|obține|obțin|porni|crea|consult[aă]?)\b",
        r"\b(?:nu|nimic|nimeni|nici\w*|niciodată|abia|încă|mâine|curând|diseară|evit\w*|refuz\w*|fără|dacă|când|după"
        r"|înainte|până|dar|sau|cum|ce|că|așa|mai târziu|exempl\w*|format\w*"
        r"|permisiun\w*|confirm\w*|mereu|fiecare|doar)\b",
    ),
    Language(  # Greek
        r"(?:τώρα )?(?:θα |ας |αφήστε με να |άσε με να )",
        r"(?:ελέγξω|ψάξω|αναζητήσω|βρω|εκτελέσω|τρέξω|διαγράψω|στείλω|καλέσω|χρησιμοποιήσω|ανοίξω|διαβάσω|δω|κοιτάξω"
        r"|λάβω)\b",
        r"\b(?:δεν|μην?|τίποτα|κανέν\w*|κανείς|κανένα\w*|ούτε|πουθενά|μόλις|ακόμα|αύριο|σύντομα|απόψε|ποτέ|χωρίς|αν"
        r"|εάν|όταν|αφού|πριν|μέχρι|αλλά|ή|πώς|πως|τι|ότι|όπως|έτσι|αργότερα|παράδειγμα\w*"
        r"|μορφή|άδεια|επιβεβ\w*|πάντα|κάθε|μόνο)\b",
    ),
    Language(  # Hungarian
        r"(?:(?:most|azonnal|először) |(?!))*+",
        r"(?:megnézem|ellenőrzöm|megkeresem|keresem|lekérdezem|lekérem|futtatom|lefuttatom|végrehajtom|törlöm"
        r"|elküldöm|küldöm|meghívom|megnyitom|elolvasom|elindítom|létrehozom)\b",
        r"\b(?:nem|ne|semmi\w*|senki\w*|sehol|sem|alig|még|majd|holnap|hamarosan|este|soha|nélkül|ha|amikor|miután"
        r"|mielőtt|amíg|de|vagy|hogyan|mit|hogy|így|később|példa\w*"
        r"|formátum\w*|engedély\w*|jóváhagy\w*|mindig|minden|csak)\b",
    ),
    Language(  # Finnish
        r"(?:(?:nyt|ensin|minä) |(?!))*+",
        r"(?:tarkistan|haen|etsin|katson|suoritan|ajan|poistan|lähetän|kutsun|käytän|avaan|luen|käynnistän"
        r"|luon)\b",
        r"\b(?:en|enkä|ei|mitään|ketään|missään|tuskin|vasta|vielä|huomenna|pian|illalla|älä|ilman|jos|kun|jälkeen"
        r"|ennen|kunnes|mutta|tai|miten|mitä|että|näin|kuten|myöhemmin|esimerk\w*"
        r"|muoto\w*|lup\w+|vahvist\w*|aina|joka|vain)\b",
    ),
)
