package lab

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
)

// KubernetesVersion is the version of the control plane that .ci/run builds from
// tools/kubernetes, where KUBEBUILDER_ASSETS does not name another.
const KubernetesVersion = "v1.37.2"

// kubernetesDir returns the directory of the control plane's programs: that of
// KUBEBUILDER_ASSETS, as with envtest, or the cache that .ci/run fills.
func kubernetesDir() (string, error) {
	dir, err := assetsDir()
	if err != nil {
		return "", err
	}
	for _, name := range []string{"kube-apiserver", "kube-controller-manager", "kube-scheduler"} {
		if _, err := exec.LookPath(filepath.Join(dir, name)); err != nil {
			return "", err
		}
	}
	return dir, nil
}

func assetsDir() (string, error) {
	if dir := os.Getenv("KUBEBUILDER_ASSETS"); dir != "" {
		return dir, nil
	}
	cache, err := CacheDir()
	return filepath.Join(cache, "kubernetes-"+KubernetesVersion), err
}

// CacheDir returns the directory that .ci/run fills.
func CacheDir() (string, error) {
	if cache := os.Getenv("KUBEPARTS_CACHE"); cache != "" {
		return cache, nil
	}
	user, err := os.UserCacheDir()
	return filepath.Join(user, "kubeparts"), err
}

func kubernetesInstalled() error {
	_, err := kubernetesDir()
	return err
}

// lookEtcd finds etcd in the directory of the control plane, as with envtest, or in PATH.
func lookEtcd() (string, error) {
	if dir := os.Getenv("KUBEBUILDER_ASSETS"); dir != "" {
		if path, err := exec.LookPath(filepath.Join(dir, "etcd")); err == nil {
			return path, nil
		}
	}
	return exec.LookPath("etcd")
}

func etcdInstalled() error {
	_, err := lookEtcd()
	return err
}

// ownLoopback returns a loopback address that the lab of no other process uses, so that
// free ports stay free: on Linux all of 127.0.0.0/8 is on the loopback link.
func ownLoopback(pid int) net.IP {
	return net.IPv4(127, byte(128|pid>>16&0x7f), byte(pid>>8), byte(pid))
}

// freePort returns an unused port of ip.
func freePort(ip net.IP) (string, error) {
	l, err := net.ListenTCP("tcp", &net.TCPAddr{IP: ip})
	if err != nil {
		return "", err
	}
	defer l.Close()
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		return "", fmt.Errorf("lab: %v is no TCP address", l.Addr())
	}
	return strconv.Itoa(addr.Port), nil
}

// EnvtestStartTimeout is the environment variable with which an envtest waits for its programs
// on a busy machine: after its 20 seconds it starts them again and leaves a directory behind.
const EnvtestStartTimeout = "KUBEBUILDER_CONTROLPLANE_START_TIMEOUT=5m"

// EnvtestEnv returns the environment variables with which an envtest finds the programs of
// the control plane, and waits for them. They must be installed; see Need("kubernetes").
func EnvtestEnv() ([]string, error) {
	dir, err := kubernetesDir()
	if err != nil {
		return nil, err
	}
	etcd, err := lookEtcd()
	return []string{"KUBEBUILDER_ASSETS=" + dir, "TEST_ASSET_ETCD=" + etcd, EnvtestStartTimeout}, err
}
