package podconfig

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

func TestTheUserOfAContainer(t *testing.T) {
	uid := func(n int64) *int64 { return &n }
	for _, tc := range []struct {
		name     string
		pod, own *int64
		nonRoot  bool
		image    User
		want     string // "uid 5", "name x", or the error
	}{
		{"the image's uid se-4", nil, nil, false, User{UID: uid(5)}, "uid 5"},
		{"the image's name", nil, nil, false, User{Name: "www"}, "name www"},
		{"not specified: root rt-83", nil, nil, false, User{}, "uid 0"},
		{"the pod's", uid(6), nil, false, User{UID: uid(5)}, "uid 6"},
		{"its own se-1", uid(6), uid(7), false, User{UID: uid(5)}, "uid 7"},
		{"root is refused se-5", uid(6), uid(0), true, User{}, `container's runAsUser breaks non-root policy (pod: "p_ns(u)", container: c)`},
		{"an image of root", nil, nil, true, User{UID: uid(0)}, `container has runAsNonRoot and image will run as root (pod: "p_ns(u)", container: c)`},
		{"an image without a user", nil, nil, true, User{}, `container has runAsNonRoot and image will run as root (pod: "p_ns(u)", container: c)`},
		{"an invalid user of the image", nil, nil, true, User{UID: new(int64(1 << 31))}, `container has runAsNonRoot and image has an invalid user id (2147483648). (Must be 1-(2147483647)): must be between 0 and 2147483647, inclusive (pod: "p_ns(u)", container: c)`},
		{"a user name cannot be verified rt-83", nil, nil, true, User{Name: "www"}, `container has runAsNonRoot and image has non-numeric user (www), cannot verify user is non-root (pod: "p_ns(u)", container: c)`},
		{"a uid does", nil, nil, true, User{UID: uid(5)}, "uid 5"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			pod := &v1.Pod{Spec: v1.PodSpec{SecurityContext: &v1.PodSecurityContext{RunAsUser: tc.pod, RunAsNonRoot: &tc.nonRoot}}}
			pod.Name, pod.Namespace, pod.UID = "p", "ns", "u"
			c := &v1.Container{Name: "c", SecurityContext: &v1.SecurityContext{RunAsUser: tc.own}}
			sc, err := containerSecurity(PodInput{Pod: pod}, ContainerInput{Container: c, User: tc.image})
			if err != nil {
				assert.Equal(t, tc.want, err.Error())
				return
			}
			got := "name " + sc.RunAsUsername
			if sc.RunAsUser != nil {
				got = "uid " + string(rune('0'+sc.RunAsUser.Value))
			}
			assert.Equal(t, tc.want, got)
		})
	}
}

func TestNamespaces(t *testing.T) {
	const pod, own, node = runtimeapi.NamespaceMode_POD, runtimeapi.NamespaceMode_CONTAINER, runtimeapi.NamespaceMode_NODE
	for _, tc := range []struct { // rt-22, se-9
		name              string
		spec              v1.PodSpec
		network, ipc, pid runtimeapi.NamespaceMode
	}{
		{"none of the host's", v1.PodSpec{}, pod, pod, own},
		{"shared processes", v1.PodSpec{ShareProcessNamespace: new(true)}, pod, pod, pod},
		{"all of the host's", v1.PodSpec{HostNetwork: true, HostIPC: true, HostPID: true}, node, node, node},
		{"the host's processes", v1.PodSpec{HostPID: true, ShareProcessNamespace: new(true)}, pod, pod, node},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := namespaces(PodInput{Pod: &v1.Pod{Spec: tc.spec}})
			require.NoError(t, err)
			assert.Equal(t, []runtimeapi.NamespaceMode{tc.network, tc.ipc, tc.pid}, []runtimeapi.NamespaceMode{got.Network, got.Ipc, got.Pid})
		})
	}
}

func TestAppArmorProfiles(t *testing.T) {
	field := func(kind v1.AppArmorProfileType, name string) *v1.AppArmorProfile {
		p := &v1.AppArmorProfile{Type: kind}
		if name != "" {
			p.LocalhostProfile = &name
		}
		return p
	}
	for _, tc := range []struct { // se-3
		name       string
		own        *v1.AppArmorProfile
		annotation string
		of         *v1.AppArmorProfile
		want       string
	}{
		{"nothing", nil, "", nil, ""},
		{"the pod's", nil, "", field(v1.AppArmorProfileTypeUnconfined, ""), "unconfined"},
		{"the annotation's", nil, "localhost/web", field(v1.AppArmorProfileTypeUnconfined, ""), "localhost/web"},
		{"its own", field(v1.AppArmorProfileTypeRuntimeDefault, ""), "unconfined", nil, "runtime/default"},
		{"no name", field(v1.AppArmorProfileTypeLocalhost, ""), "", nil, "error: missing localhost apparmor profile name"},
		{"nonsense", nil, "somewhere/web", nil, `error: annotation container.apparmor.security.beta.kubernetes.io/*: invalid AppArmor profile "somewhere/web"`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			profile, old, err := appArmor(tc.own, tc.annotation, tc.of)
			if err != nil {
				old = "error: " + err.Error()
			}
			assert.Equal(t, tc.want, old)
			assert.Equal(t, tc.want == "" || err != nil, profile == nil)
		})
	}
}

func TestSeccompProfilesStayInTheirDirectory(t *testing.T) {
	p, err := seccomp(&v1.SeccompProfile{Type: v1.SeccompProfileTypeLocalhost, LocalhostProfile: new("a/b.json")}, Node{Security: Security{SeccompDir: "/root/seccomp"}})
	require.NoError(t, err)
	assert.Equal(t, "/root/seccomp/a/b.json", p.LocalhostRef)
	for _, bad := range []*string{nil, new(""), new("../x"), new("/etc/x")} { // se-2
		_, err := seccomp(&v1.SeccompProfile{Type: v1.SeccompProfileTypeLocalhost, LocalhostProfile: bad}, Node{Security: Security{SeccompDir: "/root/seccomp"}})
		assert.Error(t, err)
	}
}

func TestSignals(t *testing.T) {
	assert.Equal(t, runtimeapi.Signal_SIGNAL_SIGUSR1, signal(v1.SIGUSR1))
	assert.Equal(t, runtimeapi.Signal_SIGNAL_SIGRTMINPLUS3, signal("SIGRTMIN+3"))
	assert.Equal(t, runtimeapi.Signal_SIGNAL_SIGRTMAXMINUS2, signal("SIGRTMAX-2"))
	assert.Equal(t, runtimeapi.Signal_SIGNAL_RUNTIME_DEFAULT, signal("SIGNONSENSE"))
	for i, name := range runtimeapi.Signal_name {
		if i != 0 { // there and back again
			assert.Equal(t, runtimeapi.Signal(i), signal(StopSignalOf(runtimeapi.Signal(i))), name)
		}
	}
	assert.Equal(t, v1.Signal("SIGRTMIN+3"), StopSignalOf(runtimeapi.Signal_SIGNAL_SIGRTMINPLUS3))
	assert.Empty(t, StopSignalOf(runtimeapi.Signal_SIGNAL_RUNTIME_DEFAULT))
	assert.Empty(t, StopSignalOf(4711), "an unknown signal")
}
