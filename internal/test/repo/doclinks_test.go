package repo_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// docLink is a link of a comment to a declaration of its package.
var docLink = regexp.MustCompile(`\[\*?([A-Z]\w*(?:\.[A-Z]\w*)?)\]`)

func TestTheLinksOfTheCommentsExist(t *testing.T) {
	needRepository(t)
	fset := token.NewFileSet()
	declared, links := map[string]map[string]bool{}, map[string]map[string]token.Pos{} // by directory and name
	for _, name := range filesWhere(t, isCode) {
		file, err := parser.ParseFile(fset, name, read(t, name), parser.ParseComments|parser.SkipObjectResolution)
		require.NoError(t, err)
		dir := path.Dir(name)
		if declared[dir] == nil {
			declared[dir], links[dir] = map[string]bool{}, map[string]token.Pos{}
		}
		declare(file, declared[dir])
		for _, group := range file.Comments {
			for _, c := range group.List {
				for _, m := range docLink.FindAllStringSubmatch(c.Text, -1) {
					if !strings.HasPrefix(c.Text, "//\t") { // not preformatted
						links[dir][m[1]] = c.Pos()
					}
				}
			}
		}
	}
	for dir, names := range links {
		for name, at := range names {
			assert.True(t, declared[dir][name], "%v: there is no %s", fset.Position(at), name)
		}
	}
}

// declare adds the declarations of a file to names, those of methods and fields as Type.Name.
func declare(file *ast.File, names map[string]bool) {
	for _, decl := range file.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok {
			if f.Recv == nil {
				names[f.Name.Name] = true
			} else {
				names[identifiers(f.Recv.List[0].Type)[0]+"."+f.Name.Name] = true
			}
			continue
		}
		for _, spec := range decl.(*ast.GenDecl).Specs {
			switch s := spec.(type) {
			case *ast.ValueSpec:
				for _, name := range s.Names {
					names[name.Name] = true
				}
			case *ast.TypeSpec:
				names[s.Name.Name] = true
				for _, member := range identifiers(s.Type) {
					names[s.Name.Name+"."+member] = true
				}
			}
		}
	}
}

// identifiers returns the identifiers in a type, in their order.
func identifiers(in ast.Expr) (names []string) {
	ast.Inspect(in, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			names = append(names, id.Name)
		}
		return true
	})
	return names
}
