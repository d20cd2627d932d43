package script

import (
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// eval runs the body of a function without arguments and gives its first result.
func eval(t testing.TB, body string) (any, error) {
	t.Helper()
	s, err := Compile(t.Context(), "test", "F", "function F()\n"+body+"\nend")
	if err != nil {
		return nil, err
	}
	var result any
	err = s.Call(t.Context(), nil, nil, 1, func(r Results) error {
		result, err = r.Value(0, nil)
		return err
	})
	return result, err
}

func TestLanguage(t *testing.T) {
	tests := map[string]struct {
		body string
		want any
	}{
		"arithmetic":    {`return 7 % 4 + 2 ^ 3`, int64(11)},
		"fraction":      {`return 1 / 4`, 0.25},
		"concatenation": {`local a = 1 return "x" .. a .. "-" .. 2.5 .. ""`, "x1-2.5"},
		"list": {
			`local t = {} for i = 1, 3 do t[#t + 1] = i * i end return t`, []any{int64(1), int64(4), int64(9)},
		},
		"nested": {
			`return {a = {b = {1, "x", true}}, c = {}}`,
			map[string]any{"a": map[string]any{"b": []any{int64(1), "x", true}}},
		},
		"swap": {`local t = {1, 2} t[1], t[2] = t[2], t[1] return t`, []any{int64(2), int64(1)}},
		"targets before assignment": {
			`local i, a = 1, {} i, a[i] = i + 1, 20 return {i, a[1]}`, []any{int64(2), int64(20)},
		},
		"many values": {
			`local t = {} local function f() return 1, 2, 3 end t.a, t["b"], t[1 and "c"] = f() return t`,
			map[string]any{"a": int64(1), "b": int64(2), "c": int64(3)},
		},
		"first of many values": {
			`local t = {} local function f() return 1, 2 end t[1] = f() return t`, []any{int64(1)},
		},
		"all of many values": {
			`local function f() return 1, 2 end return {0, f()}`, []any{int64(0), int64(1), int64(2)},
		},
		"variable arguments": {
			`local function f(...) return select("#", ...) + #{...} end return f(1, 2, 3)`, int64(6),
		},
		"methods of strings": {`return ("abc"):upper():rep(2)`, "ABCABC"},
		"methods": {
			`local o = {n = 2} function o:twice() return self.n * 2 end return o:twice()`, int64(4),
		},
		"closures": {
			`local n = 0 local function up() n = n + 1 return n end up() return up()`, int64(2),
		},
		"goto": {
			`local n = 0 for i = 1, 5 do if i % 2 == 0 then goto continue end n = n + i ::continue:: end return n`,
			int64(9),
		},
		"pairs": {
			`local n = 0 for k, v in pairs({a = 1, b = 2}) do n = n + v end return n`, int64(3),
		},
		"ipairs": {
			`local n = 0 for i, v in ipairs({5, 6}) do n = n + i * v end return n`, int64(17),
		},
		"sort": {
			`local t = {3, 1, 2} table.sort(t, function(a, b) return a > b end) return table.concat(t, ",")`, "3,2,1",
		},
		"insert and remove": {
			`local t = {1, 3} table.insert(t, 2, 2) table.insert(t, 4) table.remove(t, 1) return t`,
			[]any{int64(2), int64(3), int64(4)},
		},
		"format": {
			`return string.format("%5.2f|%03d|%s|%q|%x|%%|%c|%-4s|%g", 3.14159, 7, "s", 'a"b', 255, 65, "l", 0.5)`,
			` 3.14|007|s|"a\"b"|ff|%|A|l   |0.5`,
		},
		"sub": {
			`return string.sub("hello", 2, -2) .. ("hello"):sub(-3) .. ("x"):sub(5)`, "ellllo",
		},
		"byte and char": {`return string.char(string.byte("AB", 1, 2))`, "AB"},
		"pcall": {
			`local ok, message = pcall(error, "x", 0) return {ok, message}`, []any{false, "x"},
		},
		"tostring":              {`return tostring(nil) .. tostring(true) .. tostring(12)`, "niltrue12"},
		"tonumber":              {`return tonumber("0x10") + tonumber("8", 10)`, int64(24)},
		"large index":           {`local t = {} t[100000000] = 1 return t[100000000]`, int64(1)},
		"constructor with keys": {`local k = "b" local t = {[1] = "a", [k] = 2} return t[1] .. t.b`, "a2"},
		"no value":              {`return nil`, nil},
		"quantities": {
			`local kube = require("kube") return kube.resourceAdd("100m", nil, "1.9") .. kube.getResourceQuantity("1Ki")`, "21024",
		},
		"no dependencies": {
			`local kube = require("kube") return kube.getPodDependencies({spec = {}}, "x")`, []any{},
		},
		"requirements": {
			`return require("kube").accuratePodRequirements({spec = {nodeSelector = {a = "b"}, containers = {{name = "c", resources = {requests = {cpu = "1", memory = "1Gi"}}}}}})`,
			map[string]any{
				"nodeClaim":       map[string]any{"nodeSelector": map[string]any{"a": "b"}},
				"resourceRequest": map[string]any{"cpu": "1", "memory": "1Gi"},
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			got, err := eval(t, tc.body)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestPatterns(t *testing.T) {
	tests := map[string]string{
		`("key = value"):match("^(%w+)%s*=%s*(%w+)$")`:              "key",
		`select(2, ("key = value"):match("^(%w+)%s*=%s*(%w+)$"))`:   "value",
		`("2.10.3"):match("%d+%.(%d+)")`:                            "10",
		`tostring(("abc"):find("b", 1, true))`:                      "2",
		`tostring(("a.c"):find("."))`:                               "1",
		`tostring(("a.c"):find("%."))`:                              "2",
		`tostring(("abc"):match("()c"))`:                            "3",
		`("  trim  "):gsub("^%s+", "") .. "|"`:                      "trim  |",
		`("hello world"):gsub("o", "0") .. ""`:                      "hell0 w0rld",
		`("hello"):gsub("", "-") .. ""`:                             "-h-e-l-l-o-",
		`("abc"):gsub("%w", "%0%0") .. ""`:                          "aabbcc",
		`("$name"):gsub("%$(%w+)", {name = "x"}) .. ""`:             "x",
		`("abc"):gsub("b", function(c) return c:upper() end) .. ""`: "aBc",
		`("abc"):gsub("[^b]", "") .. ""`:                            "b",
		`("f(a(b)c)d"):match("%b()")`:                               "(a(b)c)",
		`("THE (quick) fox"):match("%f[%a]%a+%f[%A]")`:              "THE",
		`("say 'hi'"):match("(['\"])(.-)%1")`:                       "'",
		`("a-b"):match("[a%-]+")`:                                   "a-",
		`("x]"):match("[]]")`:                                       "]",
		`("aaa"):match("a-$")`:                                      "aaa",
		`("ab"):match("a?b?c?")`:                                    "ab",
		`tostring(("abc"):match("d"))`:                              "nil",
		`(function() local r = "" for k, v in ("a=1,b=2"):gmatch("(%w)=(%w)") do r = r .. k .. v end return r end)()`: "a1b2",
		`(function() local n = 0 for _ in ("abc"):gmatch("") do n = n + 1 end return tostring(n) end)()`:              "4",
	}
	for expression, want := range tests {
		got, err := eval(t, "local result = "+expression+" return result")
		if err != nil || got != want {
			t.Errorf("%s: got %q (%v), want %q", expression, got, err, want)
		}
	}
	for _, bad := range []string{
		"(", ")", "%", "[a", "%b", "%f", "%1", "(%1)", strings.Repeat("()", 33), strings.Repeat("a", 2000),
	} {
		if _, err := eval(t, `return ("x"):match("`+bad+`")`); err == nil ||
			!strings.Contains(err.Error(), "malformed pattern") {
			t.Errorf("%s: got %v", bad, err)
		}
	}
}

// Whatever a script does, it ends with an error that says why, in bounded time and memory.
func TestHostile(t *testing.T) {
	const steps, bytes = "did not end within", "MiB"
	tests := map[string]struct{ body, want string }{
		"loop":                     {`while true do end`, steps},
		"loop of goto":             {`::a:: goto a`, steps},
		"pcall swallows the limit": {`while true do pcall(function() while true do end end) end`, steps},
		"xpcall with a handler": {
			`xpcall(function() while true do end end, function() while true do end end)`, steps,
		},
		"nested pcall":  {`local function f() pcall(f) f() end f()`, ""},
		"nested xpcall": {`local function f() xpcall(f, f) f() end f()`, ""},
		"errors that are caught": {
			`local function f(n) if n == 0 then while true do pcall(error, "x") end end return 1 + f(n - 1) end return f(150)`, "",
		},
		"recursion":         {`local function f() return 1 + f() end return f()`, "stack overflow"},
		"tail recursion":    {`local function f() return f() end return f()`, steps},
		"doubling a string": {`local s = "x" while true do s = s .. s end`, "string of"},
		"many strings": {
			`local s, t = ("x"):rep(100000), {} for i = 1, 1000000 do t[i] = s .. i end`, bytes,
		},
		"rep":            {`return ("x"):rep(1000000000)`, "string of"},
		"rep of nothing": {`return #(""):rep(1e15)`, "<0>"},
		"format":         {`return ("%99999999d"):format(1)`, "invalid option"},
		"gsub":           {`local s = ("x"):rep(1000) return s:gsub("x", s:rep(100))`, "string of"},
		"concat": {
			`local t = {} for i = 1, 10000 do t[i] = ("x"):rep(1000) end return table.concat(t)`, "string of",
		},
		"concat of a gap":                {`return table.concat({}, "x", 1, 1000000000)`, "invalid value"},
		"list":                           {`local t = {} while true do t[#t + 1] = 1 end`, steps},
		"list by insert":                 {`local t = {} while true do table.insert(t, 1, 1) end`, steps},
		"insert far away":                {`local t = {} table.insert(t, 60000000, 1)`, bytes},
		"names":                          {`local t, i = {}, 0 while true do i = i + 1 t["k" .. i] = i end`, steps},
		"numbers as keys":                {`local t, i = {}, 0 while true do i = i + 1 t[-i] = i end`, steps},
		"far index":                      {`local t = {} t[60000000] = 1`, bytes},
		"far indices that are forgotten": {`while true do local t = {} t[60000] = 1 end`, bytes},
		"far index in a constructor":     {`return {[60000000] = 1}`, "table constructor"},
		"far index of many":              {`local a = {} a.x, a[60000000] = 1, 2`, bytes},
		"tables":                         {`local t = {} while true do t = {t} end`, bytes},
		"variable arguments": {
			`local t = {} for i = 1, 5000 do t[i] = i end local function f(...) local k = {} while true do k = {k, ...} end end f(unpack(t))`, bytes,
		},
		"unpack":                     {`return unpack({}, 1, 1000000000)`, "registry overflow"},
		"pattern that explodes":      {`return (("a"):rep(10000)):find((".-"):rep(30) .. "b")`, steps},
		"gsub that explodes":         {`return (("a"):rep(10000)):gsub((".-"):rep(30) .. "b", "")`, steps},
		"gmatch that explodes":       {`for x in (("a"):rep(10000)):gmatch((".-"):rep(30) .. "b") do end`, steps},
		"table that contains itself": {`local t = {} t.t = t return t`, "nested more than"},
		"result that doubles":        {`local t = {1} for i = 1, 50 do t = {t, t} end return t`, "values"},
		"large result": {
			`local s, t = ("x"):rep(1000000), {} for i = 1, 3 do t[i] = s end return t`, "bytes",
		},
		"list with holes":    {`return {1, nil, 3}`, "holes"},
		"names and indices":  {`return {1, a = 2}`, "both"},
		"not a number":       {`return 0 / 0`, "no number"},
		"function as result": {`return {f = print}`, "cannot be in a result"},
		"error with a table": {`error({})`, "table"},
		"error without end":  {`error(("x"):rep(1000000))`, "xxx…"},
		"metatables": {
			`return setmetatable({}, {__index = function() return 1 end})`, "not available",
		},
		"metatable of strings": {`return getmetatable("").__index`, "not available"},
		"code":                 {`return loadstring("return 1")()`, "not available"},
		"files":                {`return dofile("/etc/passwd")`, "not available"},
		"modules":              {`return require("os")`, "not available"},
		"io":                   {`return io.open("/etc/passwd")`, "nil"},
		"commands":             {`return os.execute("true")`, "non-function"},
		"environment":          {`return os.getenv("PATH")`, "non-function"},
		"random":               {`return math.random()`, "not available"},
		"coroutines":           {`return coroutine.create(function() end)`, "nil"},
		"debug":                {`return debug.getinfo(1)`, "nil"},
		"the functions behind operators": {
			`for k in pairs(_G) do if k:byte(1) == 0 then _G[k] = function(a, b) return ("x"):rep(1e9) end end end return {}`, "string of",
		},
		"quantity": {`return require("kube").resourceAdd("nonsense")`, "not a quantity"},
		"pod template that isn't": {
			`return require("kube").accuratePodRequirements({spec = "x"})`, "not a pod template",
		},
		"sort with a comparison for ever": {`table.sort({1, 2, 3}, function() while true do end end)`, steps},
		"tostring of itself":              {`local t = {} return tostring(t):rep(1e9)`, "string of"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			got, err := eval(t, tc.body)
			runtime.ReadMemStats(&after)
			if tc.want == "<0>" {
				if err != nil || got != int64(0) {
					t.Errorf("got %v, %v", got, err)
				}
				return
			}
			// on a busy machine, time may be up before what the test is about
			if err == nil || !strings.Contains(err.Error(), tc.want) &&
				!strings.Contains(err.Error(), errTime.Error()) {
				t.Errorf("got %v, %v", got, err)
			}
			if allocated := (after.TotalAlloc - before.TotalAlloc) >> 20; allocated > 400 {
				t.Errorf("allocated %d MiB (%v)", allocated, err)
			}
			if err != nil && len(err.Error()) > 1000 {
				t.Errorf("a message of %d bytes", len(err.Error()))
			}
		})
	}
}

func TestCompileErrors(t *testing.T) {
	tests := map[string]struct{ source, want string }{
		"syntax":              {"function F()\n  return 1 +\nend", "customization x, InterpretHealth: line 3"},
		"no function":         {"function G() end", "does not define the function F"},
		"not a function":      {"F = 1", "does not define the function F"},
		"error in the script": {"local x = nil\nlocal y = x.z\nfunction F() end", "line 2"},
		"loop in the script":  {"while true do end", "did not end"},
		"too long":            {strings.Repeat(" ", MaxScript+1), "at most"},
		"deep":                {"F = " + strings.Repeat("(", 60000) + "1" + strings.Repeat(")", 60000), ""},
		"deep tables":         {"F = " + strings.Repeat("{", 60000) + strings.Repeat("}", 60000), ""},
		"deep functions":      {strings.Repeat("do ", 20000) + strings.Repeat(" end", 20000), ""},
		"many concatenations": {"F = " + strings.Repeat("'a'..", 20000) + "'a'", ""},
		"many locals":         {strings.Repeat("local a = 1\n", 300) + "function F() end", ""},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, err := Compile(t.Context(), "customization x, InterpretHealth", "F", tc.source)
			if err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// Runs see nothing of each other.
func TestRunsAreApart(t *testing.T) {
	s, err := Compile(t.Context(), "test", "F", `n = 0 function F() n = n + 1 string.x = n return n end`)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		err := s.Call(t.Context(), nil, nil, 1, func(r Results) error {
			if value, err := r.Value(0, nil); value != int64(1) || err != nil {
				t.Errorf("got %v, %v", value, err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

func FuzzScript(f *testing.F) {
	for _, seed := range []string{
		`return 1`, `local t = {} t[#t + 1] = "x" .. 1 return t`,
		`for k, v in pairs({a = 1}) do _G[k] = v end return a`,
		`return ("abc"):gsub("(%w)", "%1%1")`, `t = {1, 2} t[1], t[2] = t[2], t[1] return t`,
		`return string.format("%5.1f", 2)`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		_, err := eval(t, body)
		if err != nil && (strings.Contains(err.Error(), "runtime error") ||
			strings.Contains(err.Error(), "goroutine")) {
			t.Error(err)
		}
	})
}

func FuzzPattern(f *testing.F) {
	f.Add("abc", "(%w)")
	f.Add("a(b)c", "%b()")
	f.Fuzz(func(t *testing.T, text, pattern string) {
		compiled, err := compilePattern(pattern, true)
		if err != nil {
			return
		}
		steps := 100_000
		m := &matcher{pattern: compiled, text: text, spend: func(n int) bool { steps -= n; return steps > 0 }}
		if begin, end, found := m.from(0); found && (begin < 0 || end < begin || end > len(text)) {
			t.Errorf("match from %d to %d of %d", begin, end, len(text))
		} else if found {
			m.captured(begin, end)
		}
	})
}
