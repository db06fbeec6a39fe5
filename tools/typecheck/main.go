// Typecheck type-checks packages and their tests for other platforms than this one, in a
// fraction of the time of go vet, which compiles all that they import for each of them.
//
//	typecheck -platforms linux/arm64,windows/amd64 ./...
//
// Everything is checked from source; the bodies of functions only in the packages that the
// patterns name. It prints each error, and the exit code is 1 if there is any. What vet finds
// beyond types is the same on all platforms, except in the files that only one of them has.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	flag.Usage = func() {
		fmt.Fprint(flag.CommandLine.Output(), "usage: typecheck -platforms OS/ARCH,… PACKAGE…\n\n"+
			"Type-checks packages and their tests for each platform.\n\n")
		flag.PrintDefaults()
	}
	platforms := flag.String("platforms", "", "comma-separated `platforms`, as GOOS/GOARCH")
	flag.Parse()
	if *platforms == "" || flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	ok := true
	for platform := range strings.SplitSeq(*platforms, ",") {
		n, problems, err := check(platform, flag.Args())
		if err != nil {
			fmt.Fprintf(os.Stderr, "typecheck: %s: %v\n", platform, err)
			os.Exit(1)
		}
		for _, problem := range problems {
			fmt.Printf("%s: %s\n", platform, problem)
		}
		fmt.Printf("%s: %d packages, %d errors\n", platform, n, len(problems))
		ok = ok && len(problems) == 0
	}
	if !ok {
		os.Exit(1)
	}
}

// listed is what go list says of a package, or of one with its tests.
type listed struct {
	ImportPath string
	Dir        string
	GoFiles    []string
	ImportMap  map[string]string
	DepOnly    bool
	Module     *struct{ GoVersion string }
	Error      *struct{ Err string }
}

// check returns the number of packages that match the patterns, variants with tests
// included, and the errors in them.
func check(platform string, patterns []string) (int, []string, error) {
	goos, goarch, ok := strings.Cut(platform, "/")
	if !ok {
		return 0, nil, errors.New("a platform is GOOS/GOARCH")
	}
	list := exec.Command("go", append([]string{"list", "-e", "-deps", "-test",
		"-json=ImportPath,Dir,GoFiles,ImportMap,DepOnly,Module,Error"}, patterns...)...)
	list.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=0")
	list.Stderr = os.Stderr
	out, err := list.StdoutPipe()
	if err != nil {
		return 0, nil, err
	}
	if err := list.Start(); err != nil {
		return 0, nil, err
	}
	checker := checker{
		fset:     token.NewFileSet(),
		sizes:    types.SizesFor("gc", goarch),
		packages: map[string]*types.Package{"unsafe": types.Unsafe},
	}
	matched := 0
	for decoder := json.NewDecoder(out); ; {
		var p listed
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return 0, nil, err
		}
		// The main package of a test has one file, which is generated.
		if p.ImportPath == "unsafe" || strings.HasSuffix(p.ImportPath, ".test") {
			continue
		}
		if !p.DepOnly {
			matched++
		}
		checker.check(p)
	}
	return matched, checker.problems, list.Wait()
}

// checker checks packages, each after those that it imports.
type checker struct {
	fset     *token.FileSet
	sizes    types.Sizes
	packages map[string]*types.Package // by import path, with " [p.test]" for variants
	problems []string
}

func (c *checker) check(p listed) {
	report := func(err error) {
		// A file is in its package and in the variants with tests.
		if problem := strings.TrimSpace(err.Error()); !p.DepOnly && !slices.Contains(c.problems, problem) {
			c.problems = append(c.problems, problem)
		}
	}
	if p.Error != nil {
		report(errors.New(p.Error.Err))
	}
	var files []*ast.File
	for _, name := range p.GoFiles {
		if !filepath.IsAbs(name) {
			name = filepath.Join(p.Dir, name)
		}
		file, err := parser.ParseFile(c.fset, name, nil, parser.SkipObjectResolution)
		if err != nil {
			report(err)
		}
		if file != nil {
			files = append(files, file)
		}
	}
	config := types.Config{
		Importer:         imports{c, p.ImportMap},
		Sizes:            c.sizes,
		IgnoreFuncBodies: p.DepOnly,
		Error:            report,
	}
	if p.Module != nil && p.Module.GoVersion != "" {
		config.GoVersion = "go" + p.Module.GoVersion
	}
	path, _, _ := strings.Cut(p.ImportPath, " ")
	checked, _ := config.Check(path, c.fset, files, nil) // its errors were reported
	c.packages[p.ImportPath] = checked
}

// imports resolves the imports of one package.
type imports struct {
	*checker
	resolved map[string]string
}

func (i imports) Import(path string) (*types.Package, error) {
	if resolved, ok := i.resolved[path]; ok {
		path = resolved
	}
	if p := i.packages[path]; p != nil {
		return p, nil
	}
	return nil, fmt.Errorf("%s was not listed", path)
}
