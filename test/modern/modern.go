//go:build unix

package modern

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/test/compare"
	"github.com/kubeparts/kubeparts/test/e2enode"
	"github.com/kubeparts/kubeparts/test/internal/cli"
	"github.com/kubeparts/kubeparts/test/internal/labenv"
	"github.com/kubeparts/kubeparts/test/internal/machine"
)

// Command returns the subcommand.
func Command() cli.Command {
	return cli.NewCommand("modern", "another command in an emulated machine with cgroup v2, systemd, NUMA, swap", parseFlags, modern)
}

// modern runs the command with each driver and returns the exit code.
func modern(ctx context.Context, o options, out io.Writer) int {
	say := cli.NewPrinter(out)
	dir, err := os.MkdirTemp("", "modern")
	if err != nil {
		say("%v", err)
		return 2
	}
	defer os.RemoveAll(dir)
	programs, job := filepath.Join(dir, "programs"), filepath.Join(dir, "job")
	if err := errors.Join(stagePrograms(programs, o.command[0]), stageJob(ctx, o, job)); err != nil {
		say("failed to prepare the machine: %v", err)
		return 2
	}
	worst := 0
	for _, driver := range o.drivers {
		code, err := runIn(ctx, o, driver, dir, out, say)
		if err != nil {
			say("%s: %v", driver, err)
			return 2
		}
		say("%s: exit code %d; files: %s", driver, code, filepath.Join(o.results, driver))
		worst = max(worst, code)
	}
	return worst
}

// runIn runs the command in a machine with a cgroup driver.
func runIn(ctx context.Context, o options, driver, dir string, out io.Writer, say func(string, ...any)) (int, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, o.timeout, fmt.Errorf("not done after %v (see --timeout)", o.timeout))
	defer cancel()
	job, results := filepath.Join(dir, "job"), filepath.Join(o.results, driver)
	if err := os.MkdirAll(results, 0o755); err != nil {
		return 0, err
	}
	m := machine.Config{
		Systemd: driver == systemd, CPUs: o.cpus, MemoryMiB: o.memory, NUMANodes: o.numa, SwapMiB: o.swap, HugePages: o.hugePages, VirtualTime: o.virtual,
		Cache: o.cache, Dir: dir, Programs: filepath.Join(dir, "programs"), Job: job, Out: out,
		Say: func(format string, args ...any) { say("%s: %s", driver, fmt.Sprintf(format, args...)) },
	}
	var code int
	err := lab.Program(ctx, out, func(t testing.TB) (err error) {
		var registry string
		switch o.command[0] {
		case "compare":
			if !o.virtual { // time outside is another one
				m.Say("starting the control planes outside of the machine")
				startControlPlanes(t, filepath.Join(job, controlPlanes))
			}
		case "e2enode":
			m.Say("making the images of the suite outside of the machine")
			if registry, err = prepareSuite(ctx, t, job, dir); err != nil {
				return err
			}
		}
		if err := os.WriteFile(filepath.Join(job, "run"), []byte(script(driver, registry, o)), 0o644); err != nil {
			return err
		}
		code, err = machine.Run(ctx, m, results)
		return err
	})
	if err != nil {
		return 0, errors.Join(err, context.Cause(ctx))
	}
	return code, nil
}

// startControlPlanes starts the control planes of compare on this machine, where they are 13 to 42 times faster, and
// writes the files by which the nodes in the machine use them to a directory.
func startControlPlanes(t testing.TB, dir string) {
	if err := errors.Join(os.RemoveAll(dir), os.Mkdir(dir, 0o755)); err != nil {
		t.Fatalf("make the directory of the control planes: %v", err)
	}
	for _, kind := range compare.Kinds() {
		access := compare.AccessIn(dir, kind)
		lab.NewControlPlane(t, lab.ControlPlaneConfig{Bare: true, Guest: machine.Host()}).WriteGuest(access.Admin, access.Node, compare.NodeName)
	}
}

// prepareSuite writes the names of the tests of e2enode to the job's file names.tsv, starts a registry of their
// images on this machine, and returns its address in the machine. dir is for temporary files.
func prepareSuite(ctx context.Context, t testing.TB, job, dir string) (registry string, err error) {
	cache, err := lab.CacheDir()
	if err != nil {
		return "", err
	}
	tools, kubernetes := filepath.Join(cache, conformanceDir), filepath.Join(cache, kubeletDir)
	if err := e2enode.WriteNames(ctx, filepath.Join(job, "names.tsv"), tools, kubernetes, dir); err != nil {
		return "", err
	}
	_, port, err := net.SplitHostPort(e2enode.ServeImages(t, tools, kubernetes, dir))
	return net.JoinHostPort(machine.Host().String(), port), err
}

// controlPlanes is the directory of the files of the control planes, in that of the job.
const controlPlanes = "control-planes"

// program is this program in the machine.
const program = "/job/test"

// script returns the shell script that runs the command in the machine. registry is that of the images of e2enode.
func script(driver, registry string, o options) string {
	command, prepare := slices.Clone(o.command), ""
	switch command[0] {
	case "sh": // not a command of this program
	case "compare":
		first := []string{program, "compare", "--save", "/out"}
		if !o.virtual {
			first = append(first, "--control-planes", "/job/"+controlPlanes)
		}
		command = slices.Concat(first, command[1:])
	case "e2enode":
		prepare = "cp /job/names.tsv /out/results.tsv\n"
		command = slices.Concat([]string{program, "e2enode", "--emulated", registry, "--agent", "/job/kubelet", "--procs", "1",
			"--logs", "/out/logs", "--results", "/out/results.tsv"}, command[1:])
	default:
		command = slices.Insert(command, 0, program)
	}
	quoted := make([]string, len(command))
	for i, arg := range command {
		quoted[i] = "'" + strings.ReplaceAll(arg, "'", `'\''`) + "'"
	}
	return fmt.Sprintf(`export KUBEPARTS_CACHE=/programs KUBEPARTS_KUBELET=/job/kubelet KUBEPARTS_PAUSE=/job/pause
export KUBEPARTS_CGROUP_DRIVER=%s KUBEPARTS_SLOWNESS=%g KUBEPARTS_ISOLATED=1
%s%s
`, driver, o.slowness, prepare, strings.Join(quoted, " "))
}

// stageJob makes the directory of what changes from run to run: this program, the complete node and the pause program.
func stageJob(ctx context.Context, o options, dir string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := errors.Join(os.Mkdir(dir, 0o755), machine.Link(self, filepath.Join(dir, "test")), lab.BuildPause(filepath.Join(dir, "pause"))); err != nil {
		return err
	}
	node := filepath.Join(dir, "kubelet")
	if built := cmp.Or(o.agent, os.Getenv("KUBEPARTS_KUBELET")); built != "" {
		return machine.Link(built, node)
	}
	return labenv.Build(ctx, node)
}

// The directories of the cache of .ci/run that other scripts fill.
const (
	kubeletDir     = "kubelet-" + lab.KubernetesVersion
	conformanceDir = "conformance-" + lab.KubernetesVersion
)

// stagePrograms makes the directory of the programs in the cache of .ci/run that a command uses in the machine, with
// the same names.
func stagePrograms(dir, command string) error {
	cache, err := lab.CacheDir()
	if err != nil {
		return err
	}
	type programs struct {
		command string // that builds them
		names   []string
	}
	required := map[string]programs{
		"kubernetes-" + lab.KubernetesVersion: {"bash .ci/run kubernetes", []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"}},
		kubeletDir:                            {"bash hack/kubelet.sh " + lab.KubernetesVersion, []string{"kubelet"}},
	}
	if command == "e2enode" {
		delete(required, "kubernetes-"+lab.KubernetesVersion) // the suite contains an API server
		required[kubeletDir] = programs{"bash hack/kubelet.sh " + lab.KubernetesVersion + " kubelet e2e_node", []string{"kubelet", "e2e_node.test"}}
		required[conformanceDir] = programs{"bash .ci/run conformance-images", []string{"ginkgo"}}
	}
	for name, r := range required {
		if err := errors.Join(labenv.Require(r.command, filepath.Join(cache, name), r.names...), machine.Stage(filepath.Join(cache, name), filepath.Join(dir, name), r.names)); err != nil {
			return err
		}
	}
	return machine.StageContainerd(filepath.Join(dir, "containerd-v2")) // where lab.FindContainerd looks
}
