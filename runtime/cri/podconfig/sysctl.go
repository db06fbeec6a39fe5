package podconfig

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/node/util/sysctl"

	"github.com/kubeparts/kubeparts/runtime"
)

// safeSysctls maps the sysctls that affect only the pod to the first kernel version for
// which this holds, "" for all (rule se-14).
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
	"net.ipv4.tcp_notsent_lowat":          "4.6",
	"net.ipv4.tcp_rmem":                   "4.15",
	"net.ipv4.tcp_wmem":                   "4.15",
	"net.ipv4.tcp_slow_start_after_idle":  "4.15",
}

// sysctlPattern matches the name of a sysctl, or a prefix that ends with "*".
var sysctlPattern = regexp.MustCompile(`^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[./])*([a-z0-9][-_a-z0-9]*)?[a-z0-9*]$`)

const maxSysctlName = 253

// Sysctls admits pods by their sysctls. The zero value allows the sysctls that are safe on
// all kernels. Safe for concurrent use.
type Sysctls struct {
	kernel  string
	allowed []string // unsafe sysctls, and prefixes that end with "*"
}

// NewSysctls returns a Sysctls for a kernel release as in uname, "" for an old one, that
// also allows the unsafe sysctls: names, or prefixes that end with "*" (rule se-15). It
// returns an error for one that is not namespaced, because pods would set it for the whole
// machine.
func NewSysctls(kernel string, unsafe []string) (*Sysctls, error) {
	s := &Sysctls{kernel: kernel}
	for _, name := range unsafe {
		if len(name) > maxSysctlName || !sysctlPattern.MatchString(name) {
			return nil, fmt.Errorf("sysctl %q must have at most %d characters and match regex %s", name, maxSysctlName, sysctlPattern)
		}
		if of, prefix, _ := sysctl.GetNamespace(name); of == sysctl.UnknownNamespace {
			return nil, fmt.Errorf("the sysctls %q are not known to be namespaced", prefix)
		}
		s.allowed = append(s.allowed, sysctl.NormalizeName(name))
	}
	return s, nil
}

// Admit implements pipeline.Admitter: it rejects a pod with a sysctl that is not allowed,
// or that would change a namespace of the host (rule se-16).
func (s *Sysctls) Admit(_ context.Context, pod *v1.Pod) *runtime.Rejection {
	if pod.Spec.SecurityContext == nil {
		return nil
	}
	ofHost := map[sysctl.Namespace]bool{
		sysctl.NetNamespace: pod.Spec.HostNetwork, sysctl.IPCNamespace: pod.Spec.HostIPC,
		sysctl.UserNamespace: pod.Spec.HostUsers == nil || *pod.Spec.HostUsers,
	}
	for _, set := range pod.Spec.SecurityContext.Sysctls {
		name := sysctl.NormalizeName(set.Name)
		why := "not allowlisted"
		if s.allows(name) {
			of, _, _ := sysctl.GetNamespace(name)
			if !ofHost[of] {
				continue
			}
			why = fmt.Sprintf("not allowed with host %s enabled", of)
		}
		return &runtime.Rejection{Reason: "SysctlForbidden", Message: fmt.Sprintf("forbidden sysctl: %q %s", name, why)}
	}
	return nil
}

// allows reports whether a sysctl is safe or allowed by configuration.
func (s *Sysctls) allows(name string) bool {
	if since, ok := safeSysctls[name]; ok && (since == "" || isAtLeast(s.kernel, since)) {
		return true
	}
	for _, allowed := range s.allowed {
		if prefix, ok := strings.CutSuffix(allowed, "*"); name == allowed || ok && strings.HasPrefix(name, prefix) {
			return true
		}
	}
	return false
}

// isAtLeast reports whether a kernel release, "5.15.0-91-generic", is version or later.
func isAtLeast(kernel, version string) bool {
	major, minor := majorMinor(kernel)
	leastMajor, leastMinor := majorMinor(version)
	return major > leastMajor || major == leastMajor && minor >= leastMinor
}

// majorMinor returns the first two numbers of a version, 0 if missing or not a number.
func majorMinor(version string) (major, minor int) {
	parts := strings.SplitN(version, ".", 3)
	major, _ = strconv.Atoi(parts[0])
	if len(parts) > 1 {
		digits := len(parts[1]) - len(strings.TrimLeft(parts[1], "0123456789"))
		minor, _ = strconv.Atoi(parts[1][:digits])
	}
	return major, minor
}
