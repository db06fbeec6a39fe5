package repo_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A logMessage is a message that a package logs as a warning or an error.
type logMessage struct {
	pkg, text string
	levels    []string // Error, Warn
	keys      []string // in the order of the call
	at        string   // file:line of a call

	meaning, action string // from docs/logging.md
}

// docs/logging.md has a row for each warning and error of non-test code. The first three
// columns are generated; the meaning and the action are edited in the document.
func TestTheLogMessagesAreDocumented(t *testing.T) {
	needRepository(t)
	const file = "docs/logging.md"
	const remedy = "go test ./internal/test/repo -run TestTheLogMessages -update writes the other columns"
	messages := logMessages(t)
	require.Greater(t, len(messages), 100)
	is := read(t, file)
	head, documented := readLogTable(t, string(is))
	stale := pairLogTexts(messages, documented)
	for _, m := range stale {
		t.Errorf("%s: %s does not log %q: delete the row, or move its texts to the row of the new message", file, m.pkg, m.text)
	}
	for _, m := range messages {
		if m.meaning == "" || m.action == "" {
			t.Errorf("%s: %q of %s (%s) needs a meaning and an action; %s", file, m.text, m.pkg, m.at, remedy)
		}
	}
	text := head + logTable(append(messages, stale...))
	if *update {
		require.NoError(t, os.WriteFile(filepath.Join(root, file), []byte(text), 0o644))
		return
	}
	if string(is) != text {
		t.Errorf("%s is stale: %s", file, remedy)
	}
}

// lowerCamel is the form of keys.
var lowerCamel = regexp.MustCompile(`^[a-z][a-zA-Z0-9]*$`)

// logKeys maps keys to those that Kubernetes' components use.
var logKeys = map[string]string{
	"error": "err", "uid": "podUID", "poduid": "podUID", "container": "containerName", "volume": "volumeName",
}

// Messages and keys follow the conventions of Kubernetes' structured logging.
func TestLogMessagesFollowTheConventions(t *testing.T) {
	for _, m := range logMessages(t) {
		add := func(problem string) {
			t.Errorf("%s: %q: %s", m.at, m.text, problem)
		}
		if first, _ := utf8.DecodeRuneInString(m.text); !unicode.IsUpper(first) {
			add("does not begin with an upper-case letter")
		}
		if strings.HasSuffix(m.text, ".") {
			add("ends with a full stop")
		}
		for _, key := range m.keys {
			if as := logKeys[key]; as != "" {
				add(fmt.Sprintf("key %s should be %s", key, as))
			} else if !lowerCamel.MatchString(key) {
				add(fmt.Sprintf("key %s is not in lowerCamelCase", key))
			}
		}
	}
}

// logMessages returns the warnings and errors of the non-test code of all modules, by
// package and message.
func logMessages(t *testing.T) (messages []*logMessage) {
	t.Helper()
	all := map[string]*logMessage{}
	for dir, parsed := range parsedPackages(t) {
		p := logPackage{t: t, dir: dir, fset: parsed.fset, files: parsed.files, all: all}
		for _, file := range parsed.files {
			for _, decl := range file.Decls {
				if f, ok := decl.(*ast.FuncDecl); ok && f.Body != nil {
					p.function(f)
				}
			}
		}
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		messages = append(messages, all[key])
	}
	return messages
}

// A parsedPackage has the non-test files of a directory.
type parsedPackage struct {
	fset  *token.FileSet
	files []*ast.File
}

// parsedPackages parses the non-test code of all modules.
func parsedPackages(t *testing.T) map[string]*parsedPackage {
	t.Helper()
	packages := map[string]*parsedPackage{}
	for _, name := range filesWhere(t, isCode) {
		p := packages[path.Dir(name)]
		if p == nil {
			p = &parsedPackage{fset: token.NewFileSet()}
			packages[path.Dir(name)] = p
		}
		file, err := parser.ParseFile(p.fset, name, read(t, name), parser.SkipObjectResolution)
		require.NoError(t, err)
		p.files = append(p.files, file)
	}
	return packages
}

// A logPackage collects the messages of one package.
type logPackage struct {
	t     *testing.T
	dir   string
	fset  *token.FileSet
	files []*ast.File
	all   map[string]*logMessage
}

// function adds the messages that f logs.
func (p *logPackage) function(f *ast.FuncDecl) {
	ast.Inspect(f.Body, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		sel, ok := call.Fun.(*ast.SelectorExpr)
		if !ok || !isLogger(sel.X) {
			return true
		}
		var levels []string
		args := call.Args
		switch sel.Sel.Name {
		case "Warn", "Error":
			levels = []string{sel.Sel.Name}
		case "WarnContext", "ErrorContext":
			levels, args = []string{strings.TrimSuffix(sel.Sel.Name, "Context")}, args[1:]
		case "Log", "LogAttrs":
			levels, args = p.levels(f, args[1]), args[2:]
		}
		if len(levels) == 0 {
			return true
		}
		at := p.fset.Position(call.Pos())
		where := fmt.Sprintf("%s:%d", at.Filename, at.Line)
		texts := p.strings(f, args[0])
		if len(texts) == 0 {
			p.t.Errorf("%s: the message is not a constant of the package: log what varies under a key", where)
		}
		keys := append(p.with(f, sel.X), p.keys(f, args[1:], call.Ellipsis.IsValid())...)
		for _, text := range texts {
			m := p.all[p.dir+"\x00"+text]
			if m == nil {
				m = &logMessage{pkg: p.dir, text: text, at: where}
				p.all[p.dir+"\x00"+text] = m
			}
			for _, level := range levels {
				m.levels = appendNew(m.levels, level)
			}
			for _, key := range keys {
				m.keys = appendNew(m.keys, key)
			}
		}
		return true
	})
}

func appendNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// isLogger reports whether an expression is a *slog.Logger, by its name.
func isLogger(x ast.Expr) bool {
	switch x := x.(type) {
	case *ast.Ident:
		return slices.Contains([]string{"log", "logger", "slog"}, x.Name)
	case *ast.SelectorExpr:
		return slices.Contains([]string{"log", "logger", "Logger"}, x.Sel.Name)
	case *ast.CallExpr: // log.With(…).Warn
		sel, ok := x.Fun.(*ast.SelectorExpr)
		return ok && sel.Sel.Name == "With" && isLogger(sel.X)
	}
	return false
}

// levels returns the levels from Warn on that x, an argument in f, can be.
func (p *logPackage) levels(f *ast.FuncDecl, x ast.Expr) (levels []string) {
	for _, value := range append(assigned(f, x), x) {
		if sel, ok := value.(*ast.SelectorExpr); ok {
			if level, ok := strings.CutPrefix(sel.Sel.Name, "Level"); ok && (level == "Warn" || level == "Error") {
				levels = appendNew(levels, level)
			}
		}
	}
	return levels
}

// strings returns the string literals that x, an expression in f, can be: itself, what f
// assigns to it, or what callers in the package pass for it.
func (p *logPackage) strings(f *ast.FuncDecl, x ast.Expr) (texts []string) {
	if text, ok := literal(x); ok {
		return []string{text}
	}
	for _, value := range assigned(f, x) {
		if text, ok := literal(value); ok {
			texts = append(texts, text)
		}
	}
	name, _ := x.(*ast.Ident)
	index := 0
	for _, field := range f.Type.Params.List {
		for _, param := range field.Names {
			if name != nil && param.Name == name.Name {
				texts = append(texts, p.passed(f.Name.Name, index)...)
			}
			index++
		}
	}
	return texts
}

// passed returns the literals that calls of a function or method pass as an argument.
func (p *logPackage) passed(function string, index int) (texts []string) {
	for _, file := range p.files {
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || len(call.Args) <= index {
				return true
			}
			var name string
			switch fun := call.Fun.(type) {
			case *ast.Ident:
				name = fun.Name
			case *ast.SelectorExpr:
				name = fun.Sel.Name
			}
			if text, ok := literal(call.Args[index]); ok && name == function {
				texts = append(texts, text)
			}
			return true
		})
	}
	return texts
}

// assigned returns the expressions that f assigns to a variable.
func assigned(f *ast.FuncDecl, variable ast.Expr) (values []ast.Expr) {
	name, ok := variable.(*ast.Ident)
	if !ok {
		return nil
	}
	ast.Inspect(f.Body, func(n ast.Node) bool {
		if a, ok := n.(*ast.AssignStmt); ok && len(a.Lhs) == len(a.Rhs) {
			for i, to := range a.Lhs {
				if to, ok := to.(*ast.Ident); ok && to.Name == name.Name {
					values = append(values, a.Rhs[i])
				}
			}
		}
		return true
	})
	return values
}

// keys returns the keys among the arguments after a message.
func (p *logPackage) keys(f *ast.FuncDecl, args []ast.Expr, ellipsis bool) (keys []string) {
	if ellipsis { // args...
		for _, value := range assigned(f, args[len(args)-1]) {
			switch value := value.(type) {
			case *ast.CompositeLit:
				keys = append(keys, p.keys(f, value.Elts, false)...)
			case *ast.CallExpr: // append(args, …)
				keys = append(keys, p.keys(f, value.Args[1:], false)...)
			}
		}
		return keys
	}
	for i := 0; i < len(args); i += 2 {
		key, ok := literal(args[i])
		if !ok {
			p.t.Errorf("%s: the key is not a literal", p.fset.Position(args[i].Pos()))
		}
		keys = append(keys, key)
	}
	return keys
}

// with returns the keys of With in the logger that x, an expression in f, is.
func (p *logPackage) with(f *ast.FuncDecl, x ast.Expr) (keys []string) {
	for _, value := range append(assigned(f, x), x) {
		if call, ok := value.(*ast.CallExpr); ok && isLogger(call) {
			keys = append(keys, p.keys(f, call.Args, false)...)
		}
	}
	return keys
}

// literal returns the value of a string literal, or of a concatenation of some.
func literal(x ast.Expr) (string, bool) {
	switch x := x.(type) {
	case *ast.BasicLit:
		text, err := strconv.Unquote(x.Value)
		return text, x.Kind == token.STRING && err == nil
	case *ast.BinaryExpr:
		left, ok := literal(x.X)
		right, ok2 := literal(x.Y)
		return left + right, ok && ok2
	}
	return "", false
}

// readLogTable returns the text of the document before the first package, and its rows.
func readLogTable(t *testing.T, text string) (head string, rows []*logMessage) {
	t.Helper()
	head, tables, _ := strings.Cut(text, "\n## ")
	pkg := ""
	for line := range strings.Lines("## " + tables) {
		line = strings.TrimSpace(line)
		if name, ok := strings.CutPrefix(line, "## "); ok {
			pkg = name
		}
		if !strings.HasPrefix(line, "| ") || strings.HasPrefix(line, "| level |") {
			continue
		}
		columns := strings.Split(strings.Trim(line, "|"), "|")
		if !assert.Len(t, columns, 5, "docs/logging.md: %s", line) {
			continue
		}
		for i := range columns {
			columns[i] = strings.TrimSpace(columns[i])
		}
		rows = append(rows, &logMessage{
			pkg: pkg, levels: strings.Split(columns[0], ", "), text: columns[1], meaning: columns[3], action: columns[4],
			keys: strings.Split(strings.Trim(columns[2], "`"), "`, `"),
		})
	}
	return head, rows
}

// pairLogTexts gives messages the texts of the rows, and returns the rows without a
// message. A row whose message moved to another package keeps its texts. The row of a message that was
// reworded is paired with the most similar new message of its package: check the texts after that.
func pairLogTexts(messages, rows []*logMessage) (stale []*logMessage) {
	take := func(m, row *logMessage) { m.meaning, m.action = row.meaning, row.action }
	for _, row := range rows {
		i := slices.IndexFunc(messages, func(m *logMessage) bool { return m.pkg == row.pkg && m.text == row.text })
		if i < 0 {
			stale = append(stale, row)
			continue
		}
		take(messages[i], row)
	}
	stale = slices.DeleteFunc(stale, func(row *logMessage) bool { // its code moved to another package
		i := slices.IndexFunc(messages, func(m *logMessage) bool { return m.text == row.text && m.meaning+m.action == "" })
		if i >= 0 {
			take(messages[i], row)
		}
		return i >= 0
	})
	for {
		var to *logMessage
		from, most := -1, 0.1
		for _, m := range messages {
			for i, row := range stale {
				if s := similarity(m, row); row.pkg == m.pkg && m.meaning+m.action == "" && s > most {
					to, from, most = m, i, s
				}
			}
		}
		if to == nil {
			break
		}
		take(to, stale[from])
		stale = slices.Delete(stale, from, from+1)
	}
	return stale
}

// similarity is the share of the words and keys of two messages that both have.
func similarity(a, b *logMessage) float64 {
	words := func(m *logMessage) map[string]bool {
		set := map[string]bool{}
		for _, w := range append(strings.Fields(strings.ToLower(m.text)), m.keys...) {
			set[strings.Trim(w, ",;:")] = true
		}
		return set
	}
	of, other := words(a), words(b)
	both := 0
	for w := range of {
		if other[w] {
			both++
		}
	}
	return float64(both) / float64(len(of)+len(other)-both)
}

// logTable returns the generated part of docs/logging.md.
func logTable(messages []*logMessage) string {
	slices.SortStableFunc(messages, func(a, b *logMessage) int {
		if c := strings.Compare(a.pkg, b.pkg); c != 0 {
			return c
		}
		return strings.Compare(a.text, b.text)
	})
	var b strings.Builder
	pkg := ""
	for _, m := range messages {
		if m.pkg != pkg {
			pkg = m.pkg
			fmt.Fprintf(&b, "\n## %s\n\n| level | message | keys | meaning | action |\n|---|---|---|---|---|\n", pkg)
		}
		slices.Sort(m.levels)
		keys := ""
		if len(m.keys) > 0 && m.keys[0] != "" {
			keys = "`" + strings.Join(m.keys, "`, `") + "`"
		}
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", strings.Join(m.levels, ", "), m.text, keys, m.meaning, m.action)
	}
	return b.String()
}
