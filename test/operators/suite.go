package operators

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/kubeparts/kubeparts/test/internal/ginkgo"
)

// A suite is the compiled tests of a package.
type suite struct {
	*options
	name   string // of the package, as a file name
	binary string
	dir    string // of the package, where the tests run
	ginkgo bool
}

// build compiles the tests of a package with the module of its project.
func build(ctx context.Context, o *options, dir, name string) (*suite, error) {
	s := &suite{options: o, name: strings.ReplaceAll(strings.Trim(filepath.Clean(name), "./"), "/", "-"), dir: filepath.Join(o.project, name)}
	s.binary = filepath.Join(dir, s.name+".test")
	cmd := exec.CommandContext(ctx, "go", "test", "-c", "-o", s.binary, ".")
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), "GOWORK=off")
	if text, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build the tests of %s: %w\n%s", name, err, text)
	}
	help, _ := exec.CommandContext(ctx, s.binary, "-h").CombinedOutput() // exits with an error
	s.ginkgo = bytes.Contains(help, []byte("-ginkgo.json-report"))
	return s, nil
}

// run runs the tests with a side. Tests that fail are not an error; tests without a result are.
func (s *suite) run(ctx context.Context, side side) (*results, error) {
	args := []string{"-test.v", "-test.timeout=" + s.timeout.String()}
	file := filepath.Join(s.logs, s.name+"-"+side.name+".json")
	if s.ginkgo {
		args = append(args, "-ginkgo.no-color", "-ginkgo.seed=1", "-ginkgo.json-report="+file, "-ginkgo.timeout="+s.timeout.String())
		if s.focus != "" {
			args = append(args, "-ginkgo.focus="+s.focus)
		}
	}
	var output bytes.Buffer
	cmd := exec.CommandContext(ctx, s.binary, args...)
	cmd.Dir, cmd.Env = s.dir, append(os.Environ(), side.env...)
	cmd.Stdout, cmd.Stderr = &output, &output
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) } // stops its API server
	cmd.WaitDelay = 10 * time.Second
	began := time.Now()
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	stop := sampleMemory(cmd.Process.Pid, "kube-apiserver", "etcd")
	err := cmd.Wait()
	r := &results{took: time.Since(began), memory: stop(), specs: map[string]string{}}
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	log := filepath.Join(s.logs, s.name+"-"+side.name+".log")
	if err := os.WriteFile(log, output.Bytes(), 0o644); err != nil {
		return nil, err
	}
	if err != nil && !errors.As(err, new(*exec.ExitError)) {
		return nil, err
	}
	r.addTests(output.String())
	if data, err := os.ReadFile(file); s.ginkgo && err == nil {
		specs, err := ginkgo.Parse(data)
		if err != nil {
			return nil, err
		}
		if err := r.addSpecs(specs); err != nil {
			return nil, fmt.Errorf("%s does not start with %s, see %s: %w", s.name, side.name, log, err)
		}
	}
	if r.ran() == 0 {
		text := output.Bytes()
		return nil, fmt.Errorf("no test of %s has a result with %s: %v\n%s", s.name, side.name, err, text[max(0, len(text)-4000):])
	}
	return r, nil
}
