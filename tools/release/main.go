// Release makes the files of a release from the committed tree: archives, Debian and RPM packages,
// container images, bills of materials, checksums and notes, in one directory.
//
//	hack/release v0.1.0
//
// Everything is a function of the commit, the version and the Go toolchain: two runs at different
// paths write the same bytes. The network is used only for the Go module proxy.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	o, err := parseArgs(os.Args[1:], os.Stderr)
	if err == nil {
		err = run(ctx, o)
	}
	if err != nil && !errors.Is(err, flag.ErrHelp) {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// options are the command line.
type options struct {
	version    string
	repository string
	out        string
	programs   []program
	platforms  []platform // empty means all of each program
	skipChecks bool
	tag        bool
	registry   string
}

// run checks the commit, makes the files and the tags. If it fails, it removes the output.
func run(ctx context.Context, o options) error {
	c, err := readCommit(ctx, o.repository)
	if err != nil {
		return err
	}
	changelog, err := c.file(ctx, "CHANGELOG.md")
	if err != nil {
		return err
	}
	problems := check(ctx, c, o.version, changelog)
	for _, p := range problems {
		fmt.Fprintln(os.Stderr, "check:", p)
	}
	if len(problems) > 0 && !o.skipChecks {
		return fmt.Errorf("%d checks failed; --skip-checks makes the files nevertheless, for a trial", len(problems))
	}
	if err := os.Mkdir(o.out, 0o755); err != nil {
		return fmt.Errorf("%w; remove it, or choose another directory with --out", err)
	}
	work, err := os.MkdirTemp("", "kubeparts-release")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	r := &release{options: o, commit: c, work: work}
	if err := r.make(ctx, changelog); err != nil {
		return errors.Join(err, os.RemoveAll(o.out))
	}
	fmt.Printf("\nTags of this release, in this order:\n\n%s\n", tagCommands(o.version, c.hash))
	if o.tag && len(problems) == 0 {
		return c.tag(ctx, o.version)
	}
	return nil
}

// parseArgs parses the command line, with flags before and after the version.
func parseArgs(args []string, stderr io.Writer) (options, error) {
	o := options{}
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	flags.SetOutput(stderr)
	flags.StringVar(&o.repository, "repository", ".", "`directory` of the repository")
	flags.StringVar(&o.out, "out", "", "`directory` to create (default dist/VERSION in the repository)")
	flags.BoolVar(&o.skipChecks, "skip-checks", false, "report failed checks as warnings; makes no tags")
	flags.BoolVar(&o.tag, "tag", false, "make the tags of all modules after the files; pushes nothing")
	flags.StringVar(&o.registry, "registry", "ghcr.io/kubeparts", "`prefix` of the names of images")
	names := flags.String("programs", "", "only these programs, separated by commas (default all)")
	platforms := flags.String("platforms", "", "only these platforms, such as linux/amd64,linux/arm64 (default all)")
	flags.Usage = func() {
		fmt.Fprintf(stderr, "Usage: hack/release [flags] VERSION\n\nMakes the files of a release from the committed tree, in one directory:\n\n%s\nChecks before: no uncommitted changes, a dated section of CHANGELOG.md for the version,\nand a green run of .ci/run full on this commit.\n\n", describe())
		flags.PrintDefaults()
	}
	for {
		if err := flags.Parse(args); err != nil {
			return o, err
		}
		if flags.NArg() == 0 {
			break
		}
		if o.version != "" {
			return o, fmt.Errorf("one version at a time, not %s and %s", o.version, flags.Arg(0))
		}
		o.version, args = flags.Arg(0), flags.Args()[1:]
	}
	if err := checkVersion(o.version); err != nil {
		return o, err
	}
	var err error
	if o.programs, err = selectPrograms(*names); err != nil {
		return o, err
	}
	if o.platforms, err = parsePlatforms(*platforms); err != nil {
		return o, err
	}
	if o.tag && (o.skipChecks || *names != "" || *platforms != "") {
		return o, errors.New("--tag requires a complete release: no --skip-checks, --programs or --platforms")
	}
	if o.repository, err = filepath.Abs(o.repository); err != nil {
		return o, err
	}
	if o.out == "" {
		o.out = filepath.Join(o.repository, "dist", o.version)
		if err := os.MkdirAll(filepath.Dir(o.out), 0o755); err != nil {
			return o, err
		}
	}
	o.out, err = filepath.Abs(o.out)
	o.registry = strings.TrimSuffix(o.registry, "/")
	return o, err
}
