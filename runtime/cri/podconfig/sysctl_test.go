package podconfig

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

// Each safe sysctl of kubelet 1.37.2, with the first kernel for which it is safe.
func TestSafeSysctlsAreTheKubelets(t *testing.T) { // se-14
	kernels := []string{"", "3.15", "3.16", "4.4", "4.5", "4.6", "4.14", "4.15", "6.12"}
	for name, since := range map[string]string{
		"kernel.shm_rmid_forced": "", "net.ipv4.ip_local_port_range": "", "net.ipv4.tcp_syncookies": "", "net.ipv4.ping_group_range": "",
		"net.ipv4.ip_unprivileged_port_start": "", "net.ipv4.ip_local_reserved_ports": "3.16", "net.ipv4.tcp_keepalive_time": "4.5",
		"net.ipv4.tcp_fin_timeout": "4.6", "net.ipv4.tcp_keepalive_intvl": "4.5", "net.ipv4.tcp_keepalive_probes": "4.5", "net.ipv4.tcp_rmem": "4.15",
		"net.ipv4.tcp_wmem": "4.15", "net.ipv4.tcp_slow_start_after_idle": "4.15", "net.ipv4.tcp_notsent_lowat": "4.6",
	} {
		safe := false
		for _, kernel := range kernels {
			safe = safe || kernel == since
			s, err := NewSysctls(kernel, nil)
			require.NoError(t, err)
			pod := &v1.Pod{Spec: v1.PodSpec{SecurityContext: &v1.PodSecurityContext{Sysctls: []v1.Sysctl{{Name: name}}}}}
			assert.Equal(t, safe, s.Admit(t.Context(), pod) == nil, "%s with kernel %q", name, kernel)
		}
	}
	assert.Len(t, safeSysctls, 14)
}

func TestSysctlsThatPodsMaySet(t *testing.T) {
	for _, tc := range []struct {
		name   string
		kernel string
		unsafe []string
		sysctl string
		spec   v1.PodSpec
		want   string // "" is admitted
	}{
		{"safe everywhere se-14", "", nil, "net.ipv4.tcp_syncookies", v1.PodSpec{}, ""},
		{"safe in shared memory se-14", "", nil, "kernel.shm_rmid_forced", v1.PodSpec{}, ""},
		{"ports se-14", "", nil, "net.ipv4.ip_local_port_range", v1.PodSpec{}, ""},
		{"ping_group_range se-14", "", nil, "net.ipv4.ping_group_range", v1.PodSpec{}, ""},
		{"low ports se-14", "", nil, "net.ipv4.ip_unprivileged_port_start", v1.PodSpec{}, ""},
		{"reserved ports since 3.16 se-14", "3.16.0", nil, "net.ipv4.ip_local_reserved_ports", v1.PodSpec{}, ""},
		{"not before se-14", "3.15.10", nil, "net.ipv4.ip_local_reserved_ports", v1.PodSpec{}, `forbidden sysctl: "net.ipv4.ip_local_reserved_ports" not allowlisted`},
		{"keepalive since 4.5 se-14", "4.5-rc1", nil, "net.ipv4.tcp_keepalive_time", v1.PodSpec{}, ""},
		{"keepalive not before se-14", "4.4.302", nil, "net.ipv4.tcp_keepalive_intvl", v1.PodSpec{}, `forbidden sysctl: "net.ipv4.tcp_keepalive_intvl" not allowlisted`},
		{"probes since 4.5 se-14", "4.5", nil, "net.ipv4.tcp_keepalive_probes", v1.PodSpec{}, ""},
		{"fin since 4.6 se-14", "4.5.7", nil, "net.ipv4.tcp_fin_timeout", v1.PodSpec{}, `forbidden sysctl: "net.ipv4.tcp_fin_timeout" not allowlisted`},
		{"memory since 4.15 se-14", "4.15.0-213-generic", nil, "net.ipv4.tcp_rmem", v1.PodSpec{}, ""},
		{"a newer kernel se-14", "6.1.0", nil, "net.ipv4.tcp_wmem", v1.PodSpec{}, ""},
		{"of an unknown kernel se-14", "", nil, "net.ipv4.tcp_wmem", v1.PodSpec{}, `forbidden sysctl: "net.ipv4.tcp_wmem" not allowlisted`},
		{"unsafe se-16", "6.1", nil, "net.core.somaxconn", v1.PodSpec{}, `forbidden sysctl: "net.core.somaxconn" not allowlisted`},
		{"unsafe but allowed se-15", "6.1", []string{"net.core.somaxconn"}, "net.core.somaxconn", v1.PodSpec{}, ""},
		{"allowed by its prefix se-15", "6.1", []string{"kernel.msg*"}, "kernel.msgmax", v1.PodSpec{}, ""},
		{"another prefix se-15", "6.1", []string{"kernel.msg*"}, "kernel.sem", v1.PodSpec{}, `forbidden sysctl: "kernel.sem" not allowlisted`},
		{"with slashes se-16", "6.1", []string{"net/core/*"}, "net/core/somaxconn", v1.PodSpec{}, ""},
		{"with slashes, refused with dots se-16", "6.1", nil, "net/core/somaxconn", v1.PodSpec{}, `forbidden sysctl: "net.core.somaxconn" not allowlisted`},
		{"of the host's network se-16", "6.1", nil, "net.ipv4.tcp_syncookies", v1.PodSpec{HostNetwork: true}, `forbidden sysctl: "net.ipv4.tcp_syncookies" not allowed with host Net enabled`},
		{"of the host's IPC se-16", "6.1", nil, "kernel.shm_rmid_forced", v1.PodSpec{HostIPC: true}, `forbidden sysctl: "kernel.shm_rmid_forced" not allowed with host IPC enabled`},
		{"of the other namespace se-16", "6.1", nil, "kernel.shm_rmid_forced", v1.PodSpec{HostNetwork: true}, ""},
		{"of the other namespace too se-16", "6.1", nil, "net.ipv4.tcp_syncookies", v1.PodSpec{HostIPC: true}, ""},
		{"of the host's users se-16", "6.1", []string{"user.*"}, "user.max_inotify_watches", v1.PodSpec{}, `forbidden sysctl: "user.max_inotify_watches" not allowed with host User enabled`},
		{"of the pod's users se-16", "6.1", []string{"user.*"}, "user.max_inotify_watches", v1.PodSpec{HostUsers: new(false)}, ""},
		{"of the domain se-15", "6.1", []string{"kernel.domainname"}, "kernel.domainname", v1.PodSpec{}, ""},
		{"with slashes and dots se-16", "6.1", []string{"net.*"}, "net/ipv4/conf/eth0.1/forwarding", v1.PodSpec{HostNetwork: true}, `forbidden sysctl: "net.ipv4.conf.eth0/1.forwarding" not allowed with host Net enabled`},
		{"of no namespace se-16", "6.1", nil, "vm.swappiness", v1.PodSpec{HostIPC: true}, `forbidden sysctl: "vm.swappiness" not allowlisted`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s, err := NewSysctls(tc.kernel, tc.unsafe)
			require.NoError(t, err)
			tc.spec.SecurityContext = &v1.PodSecurityContext{Sysctls: []v1.Sysctl{{Name: tc.sysctl, Value: "1"}}}
			refusal := s.Admit(t.Context(), &v1.Pod{Spec: tc.spec})
			if tc.want == "" {
				assert.Nil(t, refusal)
			} else {
				assert.Equal(t, &runtime.Rejection{Reason: "SysctlForbidden", Message: tc.want}, refusal)
			}
		})
	}
	assert.Nil(t, new(Sysctls).Admit(t.Context(), &v1.Pod{}), "a pod without sysctls")
}

func TestAllowedSysctlsMustBeNamespaced(t *testing.T) { // se-15
	for _, good := range []string{"kernel.sem", "kernel.shm*", "kernel.shmmax", "kernel.msg*", "fs.mqueue.*", "net.*", "net.core.somaxconn", "kernel.domainname", "user.*", "net/core/*"} {
		_, err := NewSysctls("", []string{good})
		assert.NoError(t, err, good)
	}
	for bad, prefix := range map[string]string{
		"*": "", "kernel.*": "kernel.", "kernel.s*": "kernel.s", "net*": "net", "vm.swappiness": "vm.swappiness", "fs.mqueue": "fs.mqueue", "kernel.shmm*": "kernel.shmm", "kernel.shmx": "kernel.shmx",
	} {
		_, err := NewSysctls("", []string{bad})
		assert.EqualError(t, err, `the sysctls "`+prefix+`" are not known to be namespaced`, bad)
	}
	for _, invalid := range []string{"", "net.*.x", "net..core", "net.Core", "net.core ", "net." + strings.Repeat("a", 250)} {
		_, err := NewSysctls("", []string{invalid})
		assert.ErrorContains(t, err, "must have at most 253 characters and match regex ", invalid)
	}
}
