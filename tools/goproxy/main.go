// Goproxy packs the modules of this repository into a file-system module proxy, so
// that a release can be tried with go get before it is published.
//
//	go run ./goproxy -version v0.1.0 -out DIR ..
//
// GOPROXY=file://DIR,https://proxy.golang.org then serves them. The files are those of
// the working tree, committed or not.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// modules are the directories of the modules that are released together.
var modules = []released{{dir: "."}, {dir: "kube"}, {dir: "kube/controllers", replaces: true}, {dir: "kube/provider/virtualkubelet"}, {dir: "examples"}}

type released struct {
	dir string

	// replaces permits replace directives: go get ignores those of a library, but go install
	// refuses a program of a module that has them.
	replaces bool
}

func main() {
	version := flag.String("version", "", "the version to pack, such as v0.1.0")
	out := flag.String("out", "", "the directory of the proxy; it is created")
	flag.Usage = func() {
		fmt.Fprintf(flag.CommandLine.Output(), "Usage: goproxy -version VERSION -out DIR REPOSITORY\n\n"+
			"Packs the modules of the repository into a file-system module proxy.\n\n")
		flag.PrintDefaults()
	}
	flag.Parse()
	if flag.NArg() != 1 || *version == "" || *out == "" {
		flag.Usage()
		os.Exit(2)
	}
	for _, m := range modules {
		path, err := m.pack(flag.Arg(0), *version, *out)
		if err != nil {
			fmt.Fprintln(os.Stderr, "goproxy:", err)
			os.Exit(1)
		}
		fmt.Println(path + "@" + *version)
	}
}

// pack writes the module to the proxy and returns the module's path. It fails if go install
// or go get could not use the module at that version.
func (m released) pack(repository, version, proxy string) (string, error) {
	dir := filepath.Join(repository, m.dir)
	gomod, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return "", err
	}
	parsed, err := modfile.Parse(filepath.Join(dir, "go.mod"), gomod, nil)
	if err != nil {
		return "", err
	}
	if len(parsed.Replace) > 0 && !m.replaces {
		return "", fmt.Errorf("%s/go.mod: has a replace directive; go install of its programs would fail (put it into go.work)", dir)
	}
	mod := module.Version{Path: parsed.Module.Mod.Path, Version: version}
	for _, sibling := range parsed.Require {
		if module.MatchPrefixPatterns("github.com/kubeparts/*", sibling.Mod.Path) && sibling.Mod.Version != version {
			return "", fmt.Errorf("%s/go.mod: requires %s %s, not the version that is packed (%s)", dir, sibling.Mod.Path, sibling.Mod.Version, version)
		}
	}
	escaped, err := module.EscapePath(mod.Path)
	if err != nil {
		return "", err
	}
	at := filepath.Join(proxy, filepath.FromSlash(escaped), "@v")
	if err := os.MkdirAll(at, 0o755); err != nil {
		return "", err
	}
	info := fmt.Sprintf("{\"Version\":%q,\"Time\":%q}\n", version, time.Now().UTC().Format(time.RFC3339))
	return mod.Path, errors.Join(
		write(filepath.Join(at, "list"), func(w io.Writer) error { _, err := fmt.Fprintln(w, version); return err }),
		write(filepath.Join(at, version+".info"), func(w io.Writer) error { _, err := io.WriteString(w, info); return err }),
		write(filepath.Join(at, version+".mod"), func(w io.Writer) error { _, err := w.Write(gomod); return err }),
		write(filepath.Join(at, version+".zip"), func(w io.Writer) error { return zip.CreateFromDir(w, mod, dir) }),
	)
}

func write(path string, content func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(content(f), f.Close())
}
