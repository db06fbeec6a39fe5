package podconfig

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubeparts/kubeparts/runtime"
)

func TestSysctlNames(t *testing.T) {
	for in, want := range map[string]string{
		"kernel.shm_rmid_forced":          "kernel.shm_rmid_forced",
		"net/ipv4/tcp_syncookies":         "net.ipv4.tcp_syncookies",
		"net/ipv4/conf/eth0.1/forwarding": "net.ipv4.conf.eth0/1.forwarding",
		"net.ipv4.conf.eth0/1.forwarding": "net.ipv4.conf.eth0/1.forwarding",
	} {
		assert.Equal(t, want, sysctlName(in))
	}
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
	for _, good := range []string{"kernel.sem", "kernel.shm*", "kernel.shmmax", "kernel.msg*", "fs.mqueue.*", "net.*", "net.core.somaxconn"} {
		_, err := NewSysctls("", []string{good})
		assert.NoError(t, err, good)
	}
	for _, bad := range []string{"", "*", "kernel.*", "kernel.s*", "net*", "vm.swappiness", "fs.mqueue"} {
		_, err := NewSysctls("", []string{bad})
		assert.EqualError(t, err, `the sysctls "`+bad+`" are not known to be namespaced`)
	}
}
