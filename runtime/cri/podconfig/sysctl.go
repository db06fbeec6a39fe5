package podconfig

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// safeSysctls touch nothing but the pod, from the kernel on that is given here
// (se-14).
var safeSysctls = map[string]string{
	"kernel.shm_rmid_forced":              "",
	"net.ipv4.ip_local_port_range":        "",
	"net.ipv4.tcp_syncookies":             "",
	"net.ipv4.ping_group_range":           "",
	"net.ipv4.ip_unprivileged_port_start": "",
	"net.ipv4.ip_local_reserved_ports":    "3.16",
	"net.ipv4.tcp_keepalive_time":         "4.5",
	"net.ipv4.tcp_keepalive_intvl":        "4.5",
	"net.ipv4.tcp_keepalive_probes":       "4.5",
	"net.ipv4.tcp_fin_timeout":            "4.6",
	"net.ipv4.tcp_rmem":                   "4.15",
	"net.ipv4.tcp_wmem":                   "4.15",
}

// A Sysctls knows which sysctls pods of this node may set. The zero value allows
// those that are safe on every kernel.
type Sysctls struct {
	kernel  string
	allowed []string // unsafe ones; a "*" at the end stands for anything
}

// NewSysctls returns a Sysctls for a kernel, as uname tells its version ("": an
// old one), that also allows the unsafe ones given: names, or beginnings of
// names followed by "*" (se-15). Those must be known to belong to a namespace,
// else the pod would set them for the whole machine.
func NewSysctls(kernel string, unsafe []string) (*Sysctls, error) {
	s := &Sysctls{kernel: kernel}
	for _, name := range unsafe {
		dotted := sysctlName(name)
		if sysctlNamespace(dotted) == "" {
			return nil, fmt.Errorf("the sysctls %q are not known to be namespaced", name)
		}
		s.allowed = append(s.allowed, dotted)
	}
	return s, nil
}

// Admit implements podworker.Admitter: it rejects a pod with a sysctl that pods of
// this node may not set (se-16).
func (s *Sysctls) Admit(_ context.Context, pod *v1.Pod) *runtime.Rejection {
	if pod.Spec.SecurityContext == nil {
		return nil
	}
	for _, sysctl := range pod.Spec.SecurityContext.Sysctls {
		name := sysctlName(sysctl.Name)
		why := ""
		switch of := sysctlNamespace(name); {
		case !s.allows(name):
			why = "not allowlisted"
		case of == "net" && pod.Spec.HostNetwork:
			why = "not allowed with host Net enabled"
		case of == "ipc" && pod.Spec.HostIPC:
			why = "not allowed with host IPC enabled"
		default:
			continue
		}
		return &runtime.Rejection{Reason: "SysctlForbidden", Message: fmt.Sprintf("forbidden sysctl: %q %s", name, why)}
	}
	return nil
}

// allows reports whether a sysctl is safe, or allowed although it is not.
func (s *Sysctls) allows(name string) bool {
	if since, ok := safeSysctls[name]; ok && (since == "" || notOlder(s.kernel, since)) {
		return true
	}
	for _, allowed := range s.allowed {
		if prefix, ok := strings.CutSuffix(allowed, "*"); name == allowed || ok && strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// sysctlNamespace returns the kind of namespace that the sysctl, or the pattern
// of sysctls, belongs to: "net", "ipc", or "" for none that is known.
func sysctlNamespace(name string) string {
	switch {
	case strings.HasPrefix(name, "net."):
		return "net"
	case name == "kernel.sem", strings.HasPrefix(name, "kernel.shm"),
		strings.HasPrefix(name, "kernel.msg"), strings.HasPrefix(name, "fs.mqueue."):
		return "ipc"
	}
	return ""
}

// notOlder reports whether a kernel, "5.15.0-91-generic", is at least of that
// version.
func notOlder(kernel, than string) bool {
	major, minor := majorMinor(kernel)
	leastMajor, leastMinor := majorMinor(than)
	return major > leastMajor || major == leastMajor && minor >= leastMinor
}

// majorMinor returns the first two numbers of a version, 0 for what is none.
func majorMinor(version string) (major, minor int) {
	parts := strings.SplitN(version, ".", 3)
	major, _ = strconv.Atoi(parts[0])
	if len(parts) > 1 {
		digits := len(parts[1]) - len(strings.TrimLeft(parts[1], "0123456789"))
		minor, _ = strconv.Atoi(parts[1][:digits])
	}
	return major, minor
}

// sysctlName returns the name with dots. One that is written with slashes may
// have dots that mean themselves, as in net/ipv4/conf/eth0.1/forwarding: the two
// change places, which the runtime undoes.
func sysctlName(name string) string {
	if i := strings.IndexAny(name, "./"); i < 0 || name[i] == '.' {
		return name
	}
	return strings.NewReplacer("/", ".", ".", "/").Replace(name)
}
