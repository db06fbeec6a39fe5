package operators

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/test/internal/cli"
)

const usage = `operators runs the tests of a project that use envtest, unchanged, against kube-apiserver
and etcd (control) and against testcluster, and prints a table of both.

  operators [flags] PROJECT PACKAGE...

PROJECT is the directory of the project's go.mod, PACKAGE a directory in it, such as
./internal/controller. It must be run in the root of this repository unless --ours is set.

Flags:
`

// options are the flags.
type options struct {
	project  string
	packages []string
	ours     string
	only     string
	focus    string
	logs     string
	timeout  time.Duration
}

// Command returns the subcommand. Its exit code is 1 if a suite cannot be built, or a test that
// passes with the control fails with testcluster.
func Command() cli.Command {
	return cli.NewCommand("operators", "a project's envtest suites against kube-apiserver and testcluster", parse, func(ctx context.Context, o *options, out io.Writer) int {
		if err := o.run(ctx, out); err != nil {
			fmt.Fprintf(os.Stderr, "operators: %v\n", err)
			return 1
		}
		return 0
	})
}

func parse(args []string, out io.Writer) (*options, error) {
	o := &options{}
	fs := flag.NewFlagSet("operators", flag.ContinueOnError)
	fs.StringVar(&o.ours, "ours", "", "`program` testcluster; built from kube/controllers if empty")
	fs.StringVar(&o.only, "only", "", "run one side: control or ours")
	fs.StringVar(&o.focus, "focus", "", "`pattern` of the ginkgo specs to run; all if empty")
	fs.StringVar(&o.logs, "logs", "", "`directory` for the output of the tests; removed after the run if empty")
	fs.DurationVar(&o.timeout, "timeout", 20*time.Minute, "limit for each package and side")
	fs.Usage = func() {}
	fs.SetOutput(io.Discard)
	switch err := fs.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		fs.SetOutput(out)
		_, _ = io.WriteString(out, usage)
		fs.PrintDefaults()
		return nil, err
	case err != nil:
		return nil, fmt.Errorf("%w; see --help", err)
	case fs.NArg() < 2:
		return nil, errors.New("missing PROJECT or PACKAGE; see --help")
	case o.only != "" && o.only != "control" && o.only != "ours":
		return nil, fmt.Errorf("--only=%s: want control or ours", o.only)
	}
	var err error
	o.project, err = filepath.Abs(fs.Arg(0))
	o.packages = fs.Args()[1:]
	return o, err
}

func (o *options) run(ctx context.Context, out io.Writer) error {
	dir, err := os.MkdirTemp("", "operators-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if o.logs == "" {
		o.logs = dir
	}
	if o.logs, err = filepath.Abs(o.logs); err != nil {
		return err
	}
	if err := os.MkdirAll(o.logs, 0o755); err != nil {
		return err
	}
	sides, err := o.sides(ctx, dir)
	if err != nil {
		return err
	}
	printf := cli.NewPrinter(os.Stderr)
	var rows []row
	for _, name := range o.packages {
		printf("building the tests of %s", name)
		s, err := build(ctx, o, dir, name)
		if err != nil {
			return err
		}
		r := row{name: name}
		for _, side := range sides {
			printf("running the tests of %s with %s", name, side.name)
			res, err := s.run(ctx, side)
			if err != nil {
				return err
			}
			printf("%d of %d passed in %s", res.passed(), res.ran(), res.took.Round(100*time.Millisecond))
			if side.name == "control" {
				r.control = res
			} else {
				r.ours = res
			}
		}
		rows = append(rows, r)
	}
	return report(out, rows)
}

// A side is an implementation of kube-apiserver and etcd.
type side struct {
	name string
	env  []string // with which an envtest finds it
}

// sides returns the control and testcluster, or the one that is selected.
func (o *options) sides(ctx context.Context, dir string) ([]side, error) {
	var all []side
	if o.only != "ours" {
		env, err := lab.EnvtestEnv()
		if err != nil {
			return nil, err
		}
		all = append(all, side{"control", explicit(env)})
	}
	if o.only == "control" {
		return all, nil
	}
	if o.ours == "" {
		o.ours = filepath.Join(dir, "testcluster")
		cmd := exec.CommandContext(ctx, "go", "build", "-o", o.ours, "./testcluster")
		cmd.Dir, cmd.Env = filepath.Join("kube", "controllers"), append(os.Environ(), "GOWORK=off")
		if text, err := cmd.CombinedOutput(); err != nil {
			return nil, fmt.Errorf("build testcluster (run this in the root of the repository, or set --ours): %w\n%s", err, text)
		}
	}
	assets := filepath.Join(dir, "assets")
	if text, err := exec.CommandContext(ctx, o.ours, "assets", "--dir="+assets).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%s assets: %w\n%s", o.ours, err, text)
	}
	return append(all, side{"ours", explicit([]string{"KUBEBUILDER_ASSETS=" + assets, "TEST_ASSET_ETCD=" + filepath.Join(assets, "etcd"), lab.EnvtestStartTimeout})}), nil
}

// explicit adds the variables that take precedence over Environment.BinaryAssetsDirectory,
// which tests set to the directory of a version that they download.
func explicit(env []string) []string {
	for _, v := range env {
		if dir, ok := strings.CutPrefix(v, "KUBEBUILDER_ASSETS="); ok {
			env = append(env, "TEST_ASSET_KUBE_APISERVER="+filepath.Join(dir, "kube-apiserver"), "TEST_ASSET_KUBECTL="+filepath.Join(dir, "kubectl"))
		}
	}
	return env
}
