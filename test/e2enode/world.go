package e2enode

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/test/internal/ginkgo"
	"github.com/kubeparts/kubeparts/test/internal/images"
	"github.com/kubeparts/kubeparts/test/internal/isolate"
	"github.com/kubeparts/kubeparts/test/internal/labenv"
	"github.com/kubeparts/kubeparts/test/internal/reasons"
)

// A world is what the suite runs in: a containerd that pulls the suite's images from a registry
// in this process, and a directory with the subject and the stand-ins. The suite starts etcd, an
// API server and the subject.
type world struct {
	*labenv.Env

	daemon *lab.Daemon
}

// ports are used by the suite and by kubelets that it starts.
var ports = []int{6443, 10248, 10250, 10255}

// kubeletConfig is the configuration that the suite starts the subject with, after changes of its
// own, without the cgroup driver. It differs from Kubernetes' jenkins/default-kubelet-config.yaml in
// what this machine requires: cgroup v1 and swap are accepted, and the disk may be nearly full.
//
//go:embed kubelet.yaml
var kubeletConfig []byte

// runSubject runs the selected tests of a mode against one program and returns the results. Failed
// tests are run a second time, one at a time, and have the results of that run. latest is the date and the
// circumstances of the run.
func runSubject(ctx context.Context, s subject, m mode, o options, out io.Writer, say func(string, ...any)) (results []result, latest string, err error) {
	err = lab.Program(ctx, out, func(t testing.TB) error {
		w := newWorld(t, s, o, say)
		suite := w.suite(o, s, m, say)
		latest = fmt.Sprintf("%s with containerd %s on %s/%s with %d processors", time.Now().Format(time.DateOnly), w.daemon.Version, runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
		skip := reasons.Patterns(o.excluded())
		if o.skip != "" {
			skip = append(skip, o.skip)
		}
		sel := ginkgo.Selection{Name: m.name, Focus: o.focus.String(), Skip: skip, Labels: m.filter(o.labels), Procs: o.procs}
		specs, err := suite.Run(ctx, sel)
		if err != nil {
			return err
		}
		if results, err = evaluate(specs); err != nil {
			return err
		}
		again := inconclusive(results)
		if len(again) == 0 || ctx.Err() != nil {
			return nil
		}
		say("%s: running %d failed tests again, one at a time", s, len(again))
		specs, err = suite.Run(ctx, ginkgo.Selection{Name: m.name + "-again", Focus: exactly(again), Labels: sel.Labels, Procs: 1})
		if err != nil {
			return err
		}
		second, err := evaluate(specs)
		results = retried(results, second)
		return err
	})
	return results, latest, err
}

func newWorld(t testing.TB, s subject, o options, say func(string, ...any)) *world {
	w := &world{Env: labenv.New(t, "", "containerd")}
	w.Must("start", portsFree())
	// Registered before containerd is started, so that it runs after the pods were removed.
	remove, err := isolate.Directories(w.Dir, w.directories(o)...)
	t.Cleanup(func() {
		if err := remove(); err != nil {
			w.Errorf("clean up: %v", err)
		}
	})
	w.Must("prepare directories", errors.Join(err, os.MkdirAll("/run/containerd", 0o755)))
	registry := o.emulated
	if registry == "" {
		say("%s: building images", s)
		registry = ServeImages(t, o.tools, o.kubernetes, w.Dir)
	}
	say("%s: starting containerd (%s)", s, os.Getenv("KUBEPARTS_CONTAINERD"))
	w.daemon = lab.Containerd(t, lab.ContainerdConfig{Mirror: "http://" + registry, MirrorHosts: []string{images.Host}})
	t.Cleanup(func() {
		err := errors.Join(stopUnits(w.units()), os.WriteFile(filepath.Join(w.logs(o, s), "containerd.log"), []byte(w.daemon.Log(1_000_000)), 0o644))
		if err != nil {
			w.Errorf("stop the %s: %v", s, err)
		}
	})
	if o.emulated != "" {
		// As where Kubernetes runs the suite, which requires it; the usual machine has no CAP_SYS_RESOURCE for it.
		w.Must("protect containerd", os.WriteFile(fmt.Sprintf("/proc/%d/oom_score_adj", w.daemon.PID()), []byte("-999"), 0o644))
	}
	// Where cAdvisor looks for containerd. /run of the emulated machine still has it when the next program is tested.
	const socket = "/run/containerd/containerd.sock"
	w.Must("name the socket", os.Symlink(strings.TrimPrefix(w.daemon.Endpoint, "unix://"), socket))
	t.Cleanup(func() {
		if err := os.Remove(socket); err != nil {
			w.Errorf("clean up: %v", err)
		}
	})
	w.Must("prepare the suite", w.prepare(s, o))
	return w
}

// ServeImages starts a registry with the images of the suite in directory kubernetes, which are made with the programs
// in directory tools, and returns its address. dir is for temporary files.
func ServeImages(t testing.TB, tools, kubernetes, dir string) string {
	registry := lab.NewRegistry(t)
	if err := (images.Maker{Tools: tools, Dir: dir}).Serve(registry, filepath.Join(kubernetes, suiteName)); err != nil {
		t.Fatalf("build images: %v", err)
	}
	return registry.Host
}

// WriteNames writes a file of results without any: with the names of all tests of the suite in directory kubernetes,
// which ginkgo in directory tools lists. dir is for temporary files.
func WriteNames(ctx context.Context, file, tools, kubernetes, dir string) error {
	suite := ginkgo.Suite{
		Program: filepath.Join(tools, ginkgoName), Binary: filepath.Join(kubernetes, suiteName), Logs: dir, Timeout: time.Hour,
		Printf: func(string, ...any) {},
	}
	specs, err := suite.Run(ctx, ginkgo.Selection{Name: "names", Focus: ".", Procs: 1, Dry: true})
	if err != nil {
		return err
	}
	h := history{latest: noRun, tests: results{}}
	for _, spec := range specs {
		if spec.Node == "It" {
			h.tests[spec.Name] = nil
		}
	}
	return h.write(file)
}

// directories are those of the machine that are empty at the beginning of a run.
func (w *world) directories(o options) []string {
	all := []string{"/var/lib/kubelet", "/var/log/pods", "/var/log/containers"}
	if o.emulated == "" { // otherwise it is that of systemd, and of this machine alone
		all = append(all, "/run")
	}
	return all
}

func (w *world) bin() string   { return filepath.Join(w.Dir, "bin") }
func (w *world) units() string { return filepath.Join(w.Dir, "units") }

func (w *world) logs(o options, s subject) string { return filepath.Join(o.logs, string(s)) }

// prepare fills the directory of the suite.
func (w *world) prepare(s subject, o options) error {
	program := filepath.Join(w.Dir, string(kubelet)) // where the suite looks for it
	self, err := os.Executable()
	if err != nil {
		return err
	}
	err = errors.Join(os.Mkdir(w.bin(), 0o755), os.Mkdir(w.units(), 0o755), os.MkdirAll(w.logs(o, s), 0o755),
		os.WriteFile(w.config(), fmt.Appendf(kubeletConfig[:len(kubeletConfig):len(kubeletConfig)], "cgroupDriver: %s\n", lab.CgroupDriver()), 0o644),
		os.WriteFile(w.pidFile(), []byte(strconv.Itoa(w.daemon.PID())), 0o644),
		os.Symlink(filepath.Join(o.kubernetes, suiteName), w.binary()))
	for name := range standIns {
		if name == "sudo" || !hasSystemd() {
			err = errors.Join(err, os.Symlink(self, filepath.Join(w.bin(), name)))
		}
	}
	if s == kubelet {
		return errors.Join(err, os.Symlink(filepath.Join(o.kubernetes, string(kubelet)), program))
	}
	return errors.Join(err, os.Symlink(o.agent, program))
}

func (w *world) config() string  { return filepath.Join(w.Dir, "kubelet.yaml") }
func (w *world) pidFile() string { return filepath.Join(w.Dir, "containerd.pid") }
func (w *world) binary() string  { return filepath.Join(w.Dir, suiteName) }

// suite returns the suite for a subject in a mode.
func (w *world) suite(o options, s subject, m mode, say func(string, ...any)) ginkgo.Suite {
	logs := w.logs(o, s)
	return ginkgo.Suite{
		Program: filepath.Join(o.tools, ginkgoName), Binary: w.binary(), Logs: logs, Timeout: o.timeout,
		Env: []string{"PATH=" + w.bin() + ":" + os.Getenv("PATH"), pathVariable + "=" + os.Getenv("PATH"), unitsVariable + "=" + w.units()},
		Args: slices.Concat([]string{
			"--kubelet-config-file=" + w.config(), "--container-runtime-endpoint=" + w.daemon.Endpoint,
			"--container-runtime-pid-file=" + w.pidFile(), "--prepull-images=false", "--report-dir=" + logs,
		}, m.args),
		Printf: func(format string, args ...any) { say("%s: %s", s, fmt.Sprintf(format, args...)) },
	}
}

// hasSystemd reports whether systemd is the first process. Its manual page sd_booted(3) has this way to find out.
func hasSystemd() bool {
	_, err := os.Lstat("/run/systemd/system")
	return err == nil
}

// portsFree returns an error if a port of the suite is in use.
func portsFree() error {
	for _, port := range ports {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			return fmt.Errorf("port of the suite: %w", err)
		}
		l.Close()
	}
	return nil
}
