package repo_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A rule is an item of the rule book.
type rule struct {
	id     string // pleg-10
	file   string // of the book
	noTest string // the reason why no test cites it
	source bool   // it, or its section, names the source of the behavior

	code  []string // the declarations that cite it
	tests []string // the tests that cite it
}

// item is the beginning of a rule in the book.
var item = regexp.MustCompile(`^- \*\*([a-z]+-[0-9]+)\*\* \S`)

// The rule book is complete: each rule that the code cites exists, each rule has a source,
// and a test or a reason why it has none, and the index is current.
func TestTheRuleBookAndTheCodeAgree(t *testing.T) {
	if _, err := fs.Stat(files, "kube"); err != nil {
		t.Skip("this is the core module without the modules below it")
	}
	book := readRuleBook(t)
	require.Greater(t, len(book), 1000)
	kinds := map[string]bool{}
	for id := range book {
		kinds[id[:strings.LastIndexByte(id, '-')]] = true
	}
	for _, file := range citingFiles(t) {
		for id, decls := range citations(t, file) {
			r, ok := book[id]
			switch {
			case !kinds[id[:strings.LastIndexByte(id, '-')]]:
			case !ok:
				t.Errorf("%s cites %s, which is not in docs/rules", file, id)
			case strings.HasSuffix(file, "_test.go") || isScript(file):
				r.tests = append(r.tests, decls...)
			default:
				r.code = append(r.code, decls...)
			}
		}
	}
	for _, r := range book {
		assert.True(t, r.source, "docs/rules/%s: %s has no Source", r.file, r.id)
		switch {
		case len(r.tests) == 0 && r.noTest == "":
			t.Errorf("docs/rules/%s: no test cites %s, and it has no \"No test:\" with the reason", r.file, r.id)
		case len(r.tests) > 0 && r.noTest != "":
			t.Errorf("docs/rules/%s: %s has a reason for having no test, but %s cites it", r.file, r.id, r.tests[0])
		}
	}
	index := ruleIndex(book)
	if *update {
		require.NoError(t, os.WriteFile(filepath.Join(root, "docs/rules/index.md"), []byte(index), 0o644))
	}
	readme := string(read(t, "docs/rules/README.md"))
	for _, r := range book {
		assert.Contains(t, readme, "]("+r.file+")", "docs/rules/README.md does not name the file")
	}
}

// readRuleBook returns the rules of docs/rules by ID.
func readRuleBook(t *testing.T) map[string]*rule {
	t.Helper()
	book := map[string]*rule{}
	names, err := fs.Glob(files, "docs/rules/*.md")
	require.NoError(t, err)
	for _, name := range names {
		if path.Base(name) == "index.md" || path.Base(name) == "README.md" {
			continue
		}
		text, err := fs.ReadFile(files, name)
		require.NoError(t, err)
		var r *rule
		source := false // of the section
		for line := range strings.Lines(string(text)) {
			switch {
			case strings.HasPrefix(line, "#"):
				source = false
			case strings.HasPrefix(line, "Source: "):
				source = true
			}
			if m := item.FindStringSubmatch(line); m != nil {
				r = &rule{id: m[1], file: path.Base(name), source: source}
				assert.Nil(t, book[r.id], "%s is in docs/rules twice", r.id)
				book[r.id] = r
			} else if !strings.HasPrefix(line, "  ") {
				r = nil
			}
			if r == nil {
				continue
			}
			r.source = r.source || strings.Contains(line, "  Source: ")
			if _, reason, ok := strings.Cut(line, "No test: "); ok {
				r.noTest = strings.TrimSpace(reason)
			}
		}
	}
	return book
}

// citingFiles returns the Go files of all modules, and the scripts of their tests.
func citingFiles(t *testing.T) []string {
	t.Helper()
	return filesWhere(t, func(name string) bool {
		switch {
		case strings.Contains(name, "/fuzz/") || name == "internal/test/repo/rulebook_test.go":
			return false
		case strings.Contains(path.Base(name), "integration") || strings.HasPrefix(name, "test/"):
			return false // a test that needs a real runtime proves nothing where there is none
		}
		return strings.HasSuffix(name, ".go") || isScript(name)
	})
}

// isScript reports whether a file is the input of a test.
func isScript(name string) bool {
	ext := path.Ext(name)
	return strings.Contains(name, "/testdata/") && (ext == ".yaml" || ext == ".txt")
}

// citations returns, for each rule that a file cites, the declarations in which it does so,
// with the directory of the file: pleg.Generator.Run.
func citations(t *testing.T, name string) map[string][]string {
	t.Helper()
	source, err := fs.ReadFile(files, name)
	require.NoError(t, err)
	found := map[string][]string{}
	cited := rulesIn(string(source))
	if isScript(name) {
		for _, id := range cited {
			found[id] = []string{name}
		}
		return found
	}
	if len(cited) == 0 {
		return found
	}
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, name, source, parser.ParseComments|parser.SkipObjectResolution)
	require.NoError(t, err)
	add := func(from, to token.Pos, decl string) {
		text := string(source[fset.Position(from).Offset:fset.Position(to).Offset])
		for _, id := range rulesIn(text) {
			if where := path.Dir(name) + "." + decl; !slices.Contains(found[id], where) {
				found[id] = append(found[id], where)
			}
		}
	}
	add(file.FileStart, file.Name.End(), "doc")
	at := file.Name.End()
	for _, decl := range file.Decls {
		add(at, decl.End(), declName(decl)) // with the comments before it
		at = decl.End()
	}
	add(at, file.FileEnd, path.Base(name))
	return found
}

// span is a run of rules: pleg-10 … pleg-14.
var span = regexp.MustCompile(`\b([a-z]+)-(\d+) … ([a-z]+)-(\d+)\b`)

// rulesIn returns the rules that a text cites, those within a span included.
func rulesIn(text string) []string {
	ids := ruleIDs(text)
	if !strings.Contains(text, " … ") {
		return ids
	}
	for _, m := range span.FindAllStringSubmatch(text, -1) {
		from, _ := strconv.Atoi(m[2])
		to, _ := strconv.Atoi(m[4])
		for n := from; m[1] == m[3] && n <= to && n < from+100; n++ {
			ids = append(ids, fmt.Sprintf("%s-%d", m[1], n))
		}
	}
	return ids
}

// declName returns the name of a declaration: Generator.Run, Config, New.
func declName(decl ast.Decl) string {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			return d.Name.Name
		}
		recv := d.Recv.List[0].Type
		for {
			switch x := recv.(type) {
			case *ast.StarExpr:
				recv = x.X
				continue
			case *ast.IndexExpr:
				recv = x.X
				continue
			case *ast.IndexListExpr:
				recv = x.X
				continue
			case *ast.Ident:
				return x.Name + "." + d.Name.Name
			}
			return d.Name.Name
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				return s.Name.Name
			case *ast.ValueSpec:
				return s.Names[0].Name
			}
		}
	}
	return "imports"
}

const indexHead = `# Index of the rules

Generated by ` + "`make rules`" + `; [README.md](README.md) describes the rules.

`

// ruleIndex returns docs/rules/index.md.
func ruleIndex(book map[string]*rule) string {
	var b strings.Builder
	files := map[string][]*rule{}
	tested, cited := 0, 0
	for _, r := range book {
		files[r.file] = append(files[r.file], r)
		if len(r.tests) > 0 {
			tested++
		}
		if len(r.code) > 0 {
			cited++
		}
	}
	b.WriteString(indexHead)
	fmt.Fprintf(&b, "%d rules: %d with tests, %d with a reason why there is none; the code cites %d.\n", len(book), tested, len(book)-tested, cited)
	for _, file := range slices.Sorted(maps.Keys(files)) {
		rules := files[file]
		slices.SortFunc(rules, func(a, b *rule) int { return compareRules(a.id, b.id) })
		fmt.Fprintf(&b, "\n## [%s](%s)\n\n| rule | cited by | tests, or the reason for none |\n|---|---|---|\n", strings.TrimSuffix(file, ".md"), file)
		for _, r := range rules {
			last := r.noTest
			if len(r.tests) > 0 {
				last = references(r.tests)
			}
			fmt.Fprintf(&b, "| %s | %s | %s |\n", r.id, references(r.code), last)
		}
	}
	return b.String()
}

// references returns names in code spans, three at most.
func references(names []string) string {
	slices.Sort(names)
	names = slices.Compact(names)
	var b strings.Builder
	for i, name := range names {
		if i == 3 {
			fmt.Fprintf(&b, " and %d more", len(names)-i)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString("`" + name + "`")
	}
	return b.String()
}

// compareRules orders pleg-9 before pleg-10.
func compareRules(a, b string) int {
	i, j := strings.LastIndexByte(a, '-'), strings.LastIndexByte(b, '-')
	if c := strings.Compare(a[:i], b[:j]); c != 0 {
		return c
	}
	x, _ := strconv.Atoi(a[i+1:])
	y, _ := strconv.Atoi(b[j+1:])
	return x - y
}

// ruleIDs returns the words of a text that have the form of a rule's ID: letters, a hyphen
// and digits. A regular expression takes a minute for all files under the race detector.
func ruleIDs(text string) (ids []string) {
	const digits = "0123456789"
	const letters = digits + "_ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	for at, c := range []byte(text) {
		if c != '-' {
			continue
		}
		before, after := text[:at], text[at+1:]
		from := at
		for from > 0 && strings.IndexByte(letters, before[from-1]) >= 0 {
			from--
		}
		number := after[:len(after)-len(strings.TrimLeft(after, digits))]
		whole := len(number) == len(after) || strings.IndexByte(letters, after[len(number)]) < 0
		if from < at && number != "" && whole {
			ids = append(ids, before[from:]+"-"+number)
		}
	}
	return ids
}
