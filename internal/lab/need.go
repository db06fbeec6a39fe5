package lab

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
)

// A need is a requirement of tests.
type need struct {
	// check returns nil if the machine satisfies the requirement.
	check func() error

	// get describes how to satisfy it.
	get string

	// with are the names of other requirements that it depends on.
	with []string
}

// needs are the requirements by name.
var needs = map[string]need{
	"linux": {check: linux, get: "run the test on Linux"},
	"root":  {check: root, get: "run the test as root"},
	"containerd": {
		check: containerdInstalled,
		get:   "apt-get install containerd runc, or set KUBEPARTS_CONTAINERD to a containerd with its shim and ctr in the same directory",
		with:  []string{"linux", "root", "runc", "cni", "ip", "busybox"},
	},
	"kubernetes": {
		check: kubernetesInstalled,
		get:   "bash .ci/run kubernetes, or set KUBEBUILDER_ASSETS to what setup-envtest installed, with a kube-controller-manager and a kube-scheduler in the same directory",
		with:  []string{"linux", "etcd"},
	},
	"kubectl": {
		check: kubectlInstalled,
		get:   "bash .ci/run kubernetes, or set KUBEBUILDER_ASSETS to what setup-envtest installed",
	},
	"metrics-server": {check: metricsServerInstalled, get: "bash .ci/run observe"},
	"etcd":           {check: etcdInstalled, get: "apt-get install etcd-server"},
	"runc":           {check: inPath("runc"), get: "apt-get install runc"},
	"ip":             {check: inPath("ip"), get: "apt-get install iproute2"},
	"iptables":       {check: inPath("iptables"), get: "apt-get install iptables"},
	"cni":            {check: cniInstalled, get: "apt-get install containernetworking-plugins"},
	"qemu":           {check: inPath("qemu-system-x86_64"), get: "apt-get install qemu-system-x86"},
	"kernel":         {check: kernelThere, get: "bash .ci/run kernel, or set KUBEPARTS_KERNEL to a vmlinuz with cgroup v2 built in"},
	"systemd":        {check: systemdThere, get: "apt-get install systemd dbus-daemon"},
	"busybox":        {check: busyboxInstalled, get: "apt-get install busybox-static"},
	"chromium":       {check: inPath("chromium"), get: "apt-get install chromium fonts-dejavu-core"},
	"w3m":            {check: inPath("w3m"), get: "apt-get install w3m"},
}

// Need skips the test unless the machine satisfies all named requirements. The reason
// contains the missing ones and how to install them. If KUBEPARTS_CI=1, the test fails
// instead, because a test that is skipped in CI runs nowhere. Otherwise the test is also
// skipped unless KUBEPARTS_CONTAINERD is set: unit tests must not use real components.
func Need(t testing.TB, names ...string) {
	t.Helper()
	ci := os.Getenv("KUBEPARTS_CI") == "1"
	_, isProgram := t.(*program) // started by a user
	if !ci && !isProgram && os.Getenv("KUBEPARTS_CONTAINERD") == "" {
		t.Skip("lab: integration test; set KUBEPARTS_CONTAINERD=/usr/bin/containerd to run it")
	}
	missing, err := gaps(needs, names)
	switch {
	case err != nil:
		t.Fatal(err)
	case len(missing) > 0 && isProgram:
		t.Fatalf("missing on this machine:\n%s", strings.Join(missing, "\n"))
	case len(missing) > 0 && ci:
		t.Fatalf("lab: KUBEPARTS_CI=1 forbids to skip, and this machine lacks:\n%s", strings.Join(missing, "\n"))
	case len(missing) > 0:
		t.Skipf("lab: this machine lacks:\n%s", strings.Join(missing, "\n"))
	}
}

// gaps returns a line for each named requirement, and each one that it depends on, that
// the machine does not satisfy. An unknown name is an error, because a misspelled name
// would skip the test everywhere.
func gaps(needs map[string]need, names []string) ([]string, error) {
	var lines []string
	checked := map[string]bool{}
	for queue := slices.Clone(names); len(queue) > 0; queue = queue[1:] {
		name := queue[0]
		if checked[name] {
			continue
		}
		checked[name] = true
		n, ok := needs[name]
		if !ok {
			return nil, fmt.Errorf("lab: unknown need %q, must be one of %v", name, slices.Sorted(maps.Keys(needs)))
		}
		if err := n.check(); err != nil {
			lines = append(lines, fmt.Sprintf("  %s: %v (%s)", name, err, n.get))
		}
		queue = append(queue, n.with...)
	}
	return lines, nil
}

func linux() error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("this is %s", runtime.GOOS)
	}
	return nil
}

func root() error {
	if uid := os.Geteuid(); uid != 0 {
		return fmt.Errorf("the test runs as uid %d", uid)
	}
	return nil
}

func inPath(name string) func() error {
	return func() error {
		_, err := exec.LookPath(name)
		return err
	}
}

// containerdBinary returns the path of the daemon: binary, or else the one of
// KUBEPARTS_CONTAINERD, or else the one in PATH.
func containerdBinary(binary string) (string, error) {
	if binary == "" {
		binary = os.Getenv("KUBEPARTS_CONTAINERD")
	}
	if binary == "" {
		binary = "containerd"
	}
	path, err := exec.LookPath(binary)
	if err != nil {
		return "", err
	}
	return filepath.Abs(path)
}

// containerdInstalled requires the shim and ctr in the daemon's own directory, because
// otherwise those of another version would be tested.
func containerdInstalled() error {
	path, err := containerdBinary("")
	if err != nil {
		return err
	}
	for _, name := range []string{"containerd-shim-runc-v2", "ctr"} {
		if _, err := exec.LookPath(filepath.Join(filepath.Dir(path), name)); err != nil {
			return err
		}
	}
	return nil
}

// FindContainerd returns the default containerd of a program: the one of
// KUBEPARTS_CONTAINERD, the one that .ci/run has built, or the one in PATH. Need checks
// that it exists.
func FindContainerd() string {
	if named := os.Getenv("KUBEPARTS_CONTAINERD"); named != "" {
		return named
	}
	if cache, err := CacheDir(); err == nil {
		if built, _ := filepath.Glob(filepath.Join(cache, "containerd-v*", "containerd")); len(built) > 0 {
			return built[len(built)-1]
		}
	}
	return "containerd"
}

// cniDir returns the directory of the network plugins: Debian's package and the releases
// of the plugins use different ones.
func cniDir() (string, error) {
	for _, dir := range []string{"/usr/lib/cni", "/opt/cni/bin", "/usr/libexec/cni"} {
		if _, err := os.Stat(filepath.Join(dir, "bridge")); err == nil {
			return dir, nil
		}
	}
	return "", errors.New("no plugin \"bridge\" in /usr/lib/cni, /opt/cni/bin or /usr/libexec/cni")
}

func cniInstalled() error {
	_, err := cniDir()
	return err
}

func busyboxInstalled() error {
	_, err := busybox()
	return err
}
