package mutants

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// A Unit is a bug that the tests of its own package must find.
type Unit struct {
	Package string   // its directory, relative to the repository, with slashes
	Name    string   // unique in its package
	File    string   // the changed file, in the package
	Tests   []string // that are run, of which one must fail; empty: all tests of the package
	Hangs   bool     // the tests may also exceed their time
	Why     string   // one sentence: what happens with the bug

	Find, Replace string
}

// LoadUnits reads the tables of a directory: each file has the mutants of one package. They are
// sorted by package, and in the order of their file.
func LoadUnits(dir fs.FS) (all []Unit, err error) {
	err = eachText(dir, func(name, text string) error {
		units, err := ParseUnits(text)
		if err == nil && name != units[0].Table() {
			err = fmt.Errorf("mutants of %s belong into %s", units[0].Package, units[0].Table())
		}
		all = append(all, units...)
		return err
	})
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(all, func(a, b Unit) int { return cmp.Compare(a.Package, b.Package) })
	return all, nil
}

// ParseUnits parses the mutants of one package.
func ParseUnits(text string) ([]Unit, error) {
	head, rest, found := strings.Cut(strings.ReplaceAll(text, "\r\n", "\n"), "\n=== ")
	if !found {
		return nil, errors.New(`no line "=== name"`)
	}
	pkg, ok := strings.CutPrefix(strings.TrimSpace(head), "package: ")
	if !ok || path.Clean(pkg) != pkg || strings.ContainsAny(pkg, " \n") {
		return nil, errors.New(`want "package: directory" before the first "=== name"`)
	}
	var units []Unit
	names := map[string]bool{}
	for part := range strings.SplitSeq(rest, "\n=== ") {
		name, rest, _ := strings.Cut(part, "\n")
		u, err := parseUnit(rest)
		if err == nil && (name == "" || names[name]) {
			err = errors.New("no name, or that of another one")
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		names[name] = true
		u.Package, u.Name = pkg, name
		units = append(units, u)
	}
	return units, nil
}

func parseUnit(text string) (u Unit, err error) {
	u.Find, u.Replace, err = parseChange(text, "file, test, hangs or why", func(key, value string) bool {
		switch key {
		case "file":
			u.File = value
		case "test":
			u.Tests = append(u.Tests, list(value)...)
		case "hangs":
			u.Hangs = value == "yes"
		case "why":
			u.Why = value
		default:
			return false
		}
		return true
	})
	switch {
	case err != nil:
	case u.File == "" || strings.Contains(u.File, "/") || strings.HasSuffix(u.File, "_test.go"):
		err = errors.New("no file of the package")
	case slices.Contains(u.Tests, ""):
		err = errors.New("a test without a name")
	case u.Why == "":
		err = errors.New("no why")
	}
	return u, err
}

// Path returns the changed file, relative to the repository, with slashes.
func (u Unit) Path() string { return u.Package + "/" + u.File }

// Table returns the name of the file with the mutants of the package.
func (u Unit) Table() string { return strings.ReplaceAll(u.Package, "/", "-") + ".txt" }

// Apply returns the source of its file with the bug. It returns an error unless the text occurs
// exactly once; then the mutant must be adapted to the code.
func (u Unit) Apply(source string) (string, error) {
	return Mutant{Name: u.Package + "/" + u.Name, File: u.Path(), Find: u.Find, Replace: u.Replace}.Apply(source)
}

// Run returns the pattern of the tests of a group of mutants for go test -run: "." if one of them
// needs all tests.
func Run(units ...Unit) string {
	var tests []string
	for _, u := range units {
		if len(u.Tests) == 0 {
			return "."
		}
		tests = append(tests, u.Tests...)
	}
	slices.Sort(tests)
	return "^(" + strings.Join(slices.Compact(tests), "|") + ")$"
}

// Changed is a list of files and packages of the repository, as KUBEPARTS_MUTANTS_CHANGED has it.
// The zero value selects all.
type Changed struct{ paths []string }

// ParseChanged parses paths that are separated by white space, relative to the repository. Empty
// means all.
func ParseChanged(text string) Changed {
	var c Changed
	for _, p := range strings.Fields(text) {
		c.paths = append(c.paths, path.Clean(strings.ReplaceAll(p, `\`, "/")))
	}
	return c
}

// Selects reports whether a package, or one of the files, is in the list: the directory itself, a
// file in it, including its tests, or one below its testdata.
func (c Changed) Selects(pkg string, files ...string) bool {
	return len(c.paths) == 0 || slices.ContainsFunc(c.paths, func(p string) bool {
		return p == pkg || path.Dir(p) == pkg && path.Ext(p) != "" || strings.HasPrefix(p, pkg+"/testdata/") || slices.Contains(files, p)
	})
}
