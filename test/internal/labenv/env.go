// Package labenv contains what the subcommands of this module have in common when they run a node: a directory,
// a containerd, clients of a control plane, and the process of the node.
package labenv

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/kubeparts/kubeparts/internal/lab"
	"github.com/kubeparts/kubeparts/test/internal/cgroupdir"
)

// An Env is a directory for what a run starts. All of it is removed when the run ends.
type Env struct {
	testing.TB // for package lab; see lab.Program

	Dir string
}

// New returns an Env on a machine that satisfies the requirements (see lab.Need). containerd is the program
// that lab.Containerd starts; if empty, lab.FindContainerd finds it.
func New(t testing.TB, containerd string, needs ...string) *Env {
	e := &Env{TB: t}
	if containerd == "" {
		containerd = lab.FindContainerd()
	}
	e.Must("name containerd", os.Setenv("KUBEPARTS_CONTAINERD", containerd))
	lab.Need(t, needs...)
	e.Dir = lab.Directory(t)
	return e
}

// Must ends the run if err is not nil.
func (e *Env) Must(what string, err error) {
	if err != nil {
		e.Fatalf("%s: %v", what, err)
	}
}

// Path returns the path of a file in the directory.
func (e *Env) Path(name ...string) string { return filepath.Join(append([]string{e.Dir}, name...)...) }

// Cgroup returns the parent of the cgroups of the node's pods, which no other node uses.
func (e *Env) Cgroup() string { return "/" + filepath.Base(e.Dir) }

// MakeCgroup makes Cgroup, because a kubelet requires that it exists. It is removed when the run ends.
func (e *Env) MakeCgroup() {
	dirs, err := cgroupdir.Of(e.Cgroup())
	e.Must("find cgroups", err)
	e.Must("make cgroups", cgroupdir.Make(dirs))
	e.Cleanup(func() { e.Must("remove cgroups", cgroupdir.Remove(dirs)) })
}

// Client is NewClient that ends the run if it fails.
func (e *Env) Client(kubeconfig string) (kubernetes.Interface, *rest.Config) {
	client, config, err := NewClient(kubeconfig)
	e.Must("create a client", err)
	return client, config
}

// NewClient returns a client with the rights of a kubeconfig file and without a limit of requests, and its
// configuration.
func NewClient(kubeconfig string) (kubernetes.Interface, *rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, nil, err
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	return client, config, err
}

// BuildNode starts to build the complete node into a file. The returned function waits for the result.
func (e *Env) BuildNode(file string) (wait func()) {
	built := make(chan error, 1)
	go func() { built <- Build(e.Context(), file) }()
	done := false
	wait = func() {
		if !done {
			done = true
			e.Must("build the node", <-built)
		}
	}
	e.Cleanup(wait)
	return wait
}

// Build builds the complete node, examples/kubelet of this checkout, into a file, or links the program that
// KUBEPARTS_KUBELET names.
func Build(ctx context.Context, file string) error {
	if built := os.Getenv("KUBEPARTS_KUBELET"); built != "" {
		return os.Symlink(built, file)
	}
	out, err := exec.CommandContext(ctx, "go", "build", "-o", file, "github.com/kubeparts/kubeparts/examples/kubelet").CombinedOutput()
	if err != nil {
		return fmt.Errorf("build examples/kubelet (run this in the repository): %w\n%s", err, out)
	}
	return nil
}

// BuildCached builds the complete node into a directory of the cache of .ci/run, and returns its file.
func BuildCached(ctx context.Context, dir string) (file string, err error) {
	if file, err = Cached(dir, "kubelet"); err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return "", err
	}
	return file, Build(ctx, file)
}

// KeepLogs writes logs, by the names of their files, to a directory, which is created; not if it is empty.
func KeepLogs(dir string, logs map[string][]byte) error {
	if dir == "" {
		return nil
	}
	err := os.MkdirAll(dir, 0o755)
	for name, text := range logs {
		err = errors.Join(err, os.WriteFile(filepath.Join(dir, name), text, 0o644))
	}
	return err
}

// FreePorts returns n unused ports of the loopback address.
func FreePorts(n int) (ports []int, err error) {
	for range n {
		l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)})
		if err != nil {
			return nil, err
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// OwnAddress returns an address of the machine other than loopback, which a kubelet does not accept, and those
// of package lab.
func OwnAddress() (string, error) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return "", err
	}
	for _, a := range addresses {
		if ip, ok := a.(*net.IPNet); ok && ip.IP.To4() != nil && ip.IP.IsGlobalUnicast() && !strings.HasPrefix(ip.IP.String(), "10.231.") {
			return ip.IP.String(), nil
		}
	}
	return "", errors.New("this machine has no address other than loopback")
}

// Cached returns a file in the cache of .ci/run.
func Cached(name ...string) (string, error) {
	cache, err := lab.CacheDir()
	return filepath.Join(append([]string{cache}, name...)...), err
}

// FindKubelet returns the kubelet that hack/kubelet.sh has built, or named if it is not empty. It returns an error
// if the file does not exist.
func FindKubelet(named string) (file string, err error) {
	if file = named; file == "" {
		if file, err = Cached("kubelet-"+lab.KubernetesVersion, "kubelet"); err != nil {
			return "", fmt.Errorf("find the directory of the kubelet (see --kubelet): %w", err)
		}
	}
	return file, Require("bash hack/kubelet.sh "+lab.KubernetesVersion, filepath.Dir(file), filepath.Base(file))
}

// Require returns an error, which contains the command that builds them, if a directory lacks files.
func Require(command, dir string, names ...string) error {
	for _, name := range names {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("%w; %s builds it", err, command)
		}
	}
	return nil
}
