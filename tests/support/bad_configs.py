"""Configurations with a slip as data: the file, and words that the one line of the error must hold."""

CONFIG = '[[models]]\nname = "mine"\nupstream = "simulated"\nmode = "raw"\ndialect = "harmony"\n'
REAL = 'name = "real"\nupstream = "http://a/v1"\n'
HARMONY = 'name = "a"\nupstream = "simulated"\nmode = "raw"\ndialect = "harmony"\n'
CONFIGS: dict[str, tuple[str, tuple[str, ...]]] = {
    "a table": ("[servr]\nport = 1\n", ("servr", "Did you mean 'server'?")),
    "a name of the server": ("[server]\nprot = 1\n", ("server.prot", "Did you mean 'port'?")),
    "a name of a model": (
        '[[models]]\nname = "a"\nupstrem = "simulated"\n',
        ("models[0].upstrem", "Did you mean 'upstream'?"),
    ),
    "a name of the second model": (
        f'{CONFIG}[[models]]\nname = "b"\nupstream = "simulated"\ndialekt = "json"\n',
        ("models[1].dialekt", "Did you mean 'dialect'?"),
    ),
    "a mode": (f"[[models]]\n{HARMONY.replace('raw', 'rwa')}", ("models[0].mode", "rwa", "raw")),
    "a server": (f'[[models]]\n{HARMONY}server = "vlm"\n', ("models[0].server", "vlm", "vllm")),
    "a history": (f'[server]\nhistory = "mnd"\n{CONFIG}', ("server.history", "mnd", "mend")),
    "a dialect": (f"[[models]]\n{HARMONY.replace('harmony', 'harmonny')}", ("'a'", "Did you mean 'harmony'?")),
    "an option of a dialect": (
        f'[[models]]\n{HARMONY}[models.options]\nreasoning_efort = "low"\n',
        ("'a'", "reasoning_efort", "Did you mean 'reasoning_effort'?"),
    ),
    "a value of an option": (
        f'[[models]]\n{HARMONY}[models.options]\nreasoning_effort = "lo"\n',
        ("'a'", "reasoning_effort", "'lo'", "low"),
    ),
    "a fault": (f'[[models]]\n{HARMONY}faults = "silnt"\n', ("'a'", "silnt", "Did you mean 'silent'?")),
    "a type": (f'[server]\nport = "8642"\n{CONFIG}', ("server.port", "int", "str")),
    "one model instead of a list": (CONFIG.replace("[[models]]", "[models]"), ("models", "[[models]]", "[models]")),
    "a list instead of one server": (f"[[server]]\nport = 1\n{CONFIG}", ("server", "[server]", "[[server]]")),
    **{
        f"{name} = {value}": (f"[server]\n{name} = {value}\n{CONFIG}", (f"server.{name}", bound, f"got {got}"))
        for name, value, bound, got in (
            ("port", "65536", "<= 65535", "65536"),
            ("port", "-1", ">= 0", "-1"),
            ("drain_s", "-1", ">= 0", "-1"),
            ("drain_s", "nan", ">= 0", "nan"),
            ("drain_s", "inf", "<= 86400", "inf"),
            ("max_body_bytes", "0", ">= 1", "0"),
            ("host", '""', "length >= 1", "''"),
        )
    },
    **{
        f"{name} = {value}": (f"[[models]]\n{REAL}{name} = {value}\n", ("models[0]", name, bound))
        for name, value, bound in (
            ("idle_timeout_s", "0", "> 0"),
            ("connect_timeout_s", "-1.5", "got -1.5"),
            ("model", '""', "length >= 1"),
        )
    },
    "an empty name": ('[[models]]\nname = ""\nupstream = "simulated"\n', ("models[0].name", "length >= 1", "''")),
    **{
        f"the upstream {url}": (
            f'[[models]]\nname = "a"\nupstream = "{url}"\n',
            ("'a'", "http://localhost:8000/v1", word),
        )
        for url, word in (
            ("ftp://a/v1", "http://"),
            ("http://", "no host"),
            ("http://:8000/v1", "no host"),
            ("http://a:port/v1", "port"),
            ("http://a:70000/v1", "65535"),
            ("http://a:0/v1", "65535"),
            ("http://a:/v1", "65535"),
            ("http://[::1/v1", "IPv6"),
            ("http://a b/v1", "' '"),
            ("http://a/v1?key=b", "'?'"),
        )
    },
    "the name of a header": (f'[[models]]\n{REAL}headers = {{"a b" = "c"}}\n', ("'real'", "'a b'", "x-api-key")),
    **{
        f"the value {value} of a header": (
            f"[[models]]\n{REAL}headers.x-key = {value}\n",
            ("headers.x-key", "line end"),
        )
        for value in (r'"a\nb"', r'"a\r"', r'"a\u0000"', r'"a "')
    },
    "two keys": (
        f'[[models]]\n{REAL}headers.Authorization = "Bearer a"\napi_key_env = "PATH"\n',
        ("headers.authorization", "api_key_env"),
    ),
    "a key beside one in the URL": (
        '[[models]]\nname = "a"\nupstream = "http://a:b@c/v1"\napi_key_env = "PATH"\n',
        ("api_key_env", "URL"),
    ),
    "a mode that needs no dialect": (
        f'[[models]]\n{REAL}mode = "native"\ndialect = "json"\n',
        ("'real'", "'native'", "leave out dialect = 'json'"),
    ),
    "options without a dialect": (
        f'[[models]]\n{REAL}options.reasoning_effort = "low"\n',
        ("'real'", "reasoning_effort", "add dialect"),
    ),
    "faults of a real server": (f'[[models]]\n{REAL}faults = "all"\n', ("'real'", "faults", "simulated")),
    "a balance of one server": (f'[[models]]\n{REAL}balance = "least"\n', ("'real'", "balance", "several servers")),
    "samples of a real server": (f'[[models]]\n{REAL}faults = "sample"\n', ("'real'", "faults", "simulated")),
    "a raw server that has only a chat endpoint": (
        f'[[models]]\n{REAL}mode = "raw"\ndialect = "hermes"\nserver = "ollama"\n',
        ("'real'", "'ollama'", "'native' or 'prompt'"),
    ),
    **{
        f"the field {name}": (f"[[models]]\n{REAL}fields.{name} = 1\n", (f"fields.{name}", "leave it out"))
        for name in (
            "model",
            "messages",
            "stream",
            "stream_options",
            "tools",
            "tool_choice",
            "functions",
            "prompt",
            "n",
        )
    },
    "a field that no completion endpoint knows": (
        f'[[models]]\n{REAL}mode = "raw"\ndialect = "harmony"\nfields.reasoning_effort = "low"\n',
        ("fields.reasoning_effort", "completion endpoint", "option"),
    ),
    "no upstream": ('[[models]]\nname = "a"\n', ("models[0]", "upstream")),
    "a repeat that is none": (f"[[models]]\n{HARMONY}max_repeats = 1\n", ("'a'", "max_repeats", "2 or more")),
    "a label of MCP servers": (
        f'[[models]]\n{HARMONY}mcp = ["clok"]\n[[mcp]]\nlabel = "clock"\ncommand = "clock"\n',
        ("'a'", "'clok'", "Did you mean 'clock'?", "They are: clock."),
    ),
    **{
        f"a search with {title}": (f"{CONFIG}[search]\n{fields}", ("[search]", *words))
        for title, fields, *words in (
            ("nobody who searches", "", "neither"),
            ("two who search", 'url = "http://a"\nmcp = "b"\n', "both"),
            ("a tool of a url", 'url = "http://a"\ntool = "b"\n', "tool is for mcp"),
            ("no address", 'url = "ftp://a"\n', "http://"),
            ("an unknown server", 'mcp = "web"\ntool = "b"\n', "'web'", "There are none."),
            ("a key that is not set", 'url = "http://a"\napi_key_env = "NOT_SET_ANYWHERE"\n', "NOT_SET_ANYWHERE"),
            ("headers of a server", 'mcp = "web"\ntool = "b"\n[search.headers]\nx = "y"\n', "headers is for a url"),
        )
    },
    "results of a search without end": (
        f'{CONFIG}[search]\nurl = "http://a"\nmax_results = 51\n',
        ("search.max_results", "<= 50"),
    ),
    "a label of no MCP server": (f'[[models]]\n{HARMONY}mcp = ["clock"]\n', ("'a'", "'clock'", "There are none.")),
    "a label twice": (
        f'[[models]]\n{HARMONY}mcp = ["b", "b"]\n[[mcp]]\nlabel = "b"\ncommand = "b"\n',
        ("'a'", "mcp names 'b' twice"),
    ),
    "two models of one name": (CONFIG + CONFIG, ("'mine'",)),
    "no TOML": ("[[models]\n", ("TOML", "line 1")),
    "no models": ("[server]\nport = 1\n", ("models",)),
    "nothing": ("", ("models",)),
}
