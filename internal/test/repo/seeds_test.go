package repo_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A random test takes its seed from package seedrun, or has constant ones. A seed from the clock,
// or the generator of the process, would decide merges by unseeded.
func TestTheRandomTestsTakeTheirSeedFromSeedrun(t *testing.T) {
	needRepository(t)
	seen := 0
	for _, name := range filesWhere(t, func(name string) bool { return strings.HasSuffix(name, "_test.go") && !inTestdata(name) }) {
		lines, err := unseeded(name, read(t, name))
		require.NoError(t, err)
		for _, line := range lines {
			t.Errorf("%s: use seedrun.Seed or seedrun.Rand", line)
		}
		seen++
	}
	assert.Greater(t, seen, 500)
}

// unseeded returns the positions in a file at which a seed is taken from the clock or from the system,
// or the generator of the process is used.
func unseeded(name string, source []byte) (lines []string, err error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, name, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	imported := map[string]string{} // the path by name
	for _, i := range file.Imports {
		path := strings.Trim(i.Path.Value, `"`)
		name := strings.TrimSuffix(path, "/v2")
		name = name[strings.LastIndex(name, "/")+1:]
		if i.Name != nil {
			name = i.Name.Name
		}
		imported[name] = path
	}
	found := func(n ast.Node, format string, args ...any) {
		lines = append(lines, fmt.Sprintf("%v: %s", set.Position(n.Pos()), fmt.Sprintf(format, args...)))
	}
	// A function of a package, or "".
	function := func(n ast.Node) (path, name string) {
		s, ok := n.(*ast.SelectorExpr)
		if !ok {
			return "", ""
		}
		x, ok := s.X.(*ast.Ident)
		if !ok || imported[x.Name] == "" {
			return "", ""
		}
		return imported[x.Name], s.Sel.Name
	}
	checkSeed := func(n ast.Node) {
		ast.Inspect(n, func(n ast.Node) bool {
			switch path, name := function(n); {
			case path == "time" && name == "Now", path == "os" && name == "Getpid", path == "hash/maphash", path == "crypto/rand":
				found(n, "a seed from %s.%s", path, name)
			}
			return true
		})
	}
	isSeed := func(n ast.Node) bool {
		id, ok := n.(*ast.Ident)
		return ok && strings.Contains(strings.ToLower(id.Name), "seed")
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if path, name := function(n.Fun); generates(path) && constructs(name) {
				for _, arg := range n.Args {
					checkSeed(arg)
				}
			}
		case *ast.AssignStmt:
			for i, left := range n.Lhs {
				if isSeed(left) {
					checkSeed(n.Rhs[min(i, len(n.Rhs)-1)])
				}
			}
		case *ast.ValueSpec:
			for i, left := range n.Names {
				if isSeed(left) && i < len(n.Values) {
					checkSeed(n.Values[i])
				}
			}
		case *ast.SelectorExpr:
			path, name := function(n)
			if generates(path) && !constructs(name) && !generators[name] {
				found(n, "the generator of the process: %s.%s", path, name)
			}
		}
		return true
	})
	return lines, nil
}

func generates(path string) bool { return path == "math/rand" || path == "math/rand/v2" }

func constructs(name string) bool { return strings.HasPrefix(name, "New") }

// generators are the types of the packages math/rand.
var generators = map[string]bool{"Rand": true, "Source": true, "Source64": true, "PCG": true, "ChaCha8": true, "Zipf": true}

func TestUnseededGeneratorsAreFound(t *testing.T) {
	const head = "package p\nimport (\"math/rand/v2\"; \"time\"; old \"math/rand\"; \"hash/maphash\"; \"os\")\nvar _ = os.Args\n"
	for text, want := range map[string]int{
		"func f() { seed := uint64(time.Now().UnixNano()); _ = seed }":                        1,
		"func f() { s := rand.Uint64(); _ = s }":                                              1,
		"func f(random func(int) int) { f(rand.IntN) }":                                       1,
		"func f() { time.Sleep(rand.N(time.Second)) }":                                        1,
		"func f() { _ = rand.New(rand.NewPCG(uint64(time.Now().Unix()), 1)) }":                2, // inside of both
		"func f() { _ = old.New(old.NewSource(int64(os.Getpid()))); old.Seed(1) }":            3,
		"var theSeed = maphash.MakeSeed()":                                                    1,
		"func f(r *rand.Rand, seed uint64) { r = rand.New(rand.NewPCG(seed, 7)); r.IntN(3) }": 0,
		"func f() { uid := time.Now().UnixNano(); _ = uid }":                                  0,
	} {
		lines, err := unseeded("x_test.go", []byte(head+text))
		require.NoError(t, err)
		assert.Len(t, lines, want, "%s: %v", text, lines)
	}
}
