package cri_test

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/podworker/pipeline"
	"github.com/kubeparts/kubeparts/runtime/cri"
	"github.com/kubeparts/kubeparts/runtime/cri/podconfig"
)

var _ pipeline.Admitter = (*cri.Runtime)(nil)

func TestAdmitRejectsSettingsThatTheNodeDoesNotHonor(t *testing.T) { // se-3, se-6, se-16
	pod := func(sc v1.PodSecurityContext) *v1.Pod { return &v1.Pod{Spec: v1.PodSpec{SecurityContext: &sc}} }
	sysctl := func(name string) *v1.Pod { return pod(v1.PodSecurityContext{Sysctls: []v1.Sysctl{{Name: name}}}) }
	profile := pod(v1.PodSecurityContext{AppArmorProfile: &v1.AppArmorProfile{Type: v1.AppArmorProfileTypeRuntimeDefault}})
	strict := pod(v1.PodSecurityContext{SupplementalGroupsPolicy: new(v1.SupplementalGroupsPolicyStrict)})
	reports := func(groups bool) *runtimeapi.StatusResponse {
		return &runtimeapi.StatusResponse{Features: &runtimeapi.RuntimeFeatures{SupplementalGroupsPolicy: groups}}
	}
	modern := podconfig.Node{Kernel: "6.1.0", Security: podconfig.Security{AppArmor: true}}
	down := errors.New("down")
	for name, tc := range map[string]struct {
		pod    *v1.Pod
		facts  podconfig.Node
		status *runtimeapi.StatusResponse
		fail   error
		want   string
	}{
		"a plain pod does not depend on the runtime": {new(v1.Pod), podconfig.Node{}, nil, down, ""},
		"a safe sysctl":         {sysctl("net.ipv4.tcp_rmem"), modern, nil, down, ""},
		"safe on newer kernels": {sysctl("net.ipv4.tcp_rmem"), podconfig.Node{}, nil, nil, "SysctlForbidden"},
		"an allowed sysctl":     {sysctl("net.core.somaxconn"), modern, nil, nil, ""},
		"an unsafe sysctl":      {sysctl("kernel.msgmax"), modern, nil, nil, "SysctlForbidden"},
		"AppArmor":              {profile, modern, nil, nil, ""},
		"no AppArmor":           {profile, podconfig.Node{}, nil, nil, "AppArmor"},
		"strict groups":         {strict, modern, reports(true), nil, ""},
		"no strict groups":      {strict, modern, reports(false), nil, "SupplementalGroupsPolicyNotSupported"},
		"the runtime is down":   {strict, modern, nil, down, "RuntimeUnknown"},
	} {
		t.Run(name, func(t *testing.T) {
			fake := newFake()
			rt, err := cri.New(cri.Config{
				Name: "fake", Runtime: &able{fakeCRI: fake, status: tc.status, fail: tc.fail}, Images: fake, Dirs: cri.Dirs{Root: t.TempDir()},
				Node: cri.Node{Facts: tc.facts, UnsafeSysctls: []string{"net.core.*"}},
			})
			require.NoError(t, err)
			got := rt.Admit(t.Context(), tc.pod)
			if tc.want == "" {
				require.Nil(t, got)
				return
			}
			require.NotNil(t, got)
			assert.Equal(t, tc.want, got.Reason)
			assert.Equal(t, tc.want == "RuntimeUnknown", got.Deferred)
		})
	}
	_, err := cri.New(cri.Config{Name: "fake", Runtime: newFake(), Images: newFake(), Node: cri.Node{UnsafeSysctls: []string{"vm.swappiness"}}}) // se-15
	require.EqualError(t, err, `cri: Config.Node.UnsafeSysctls: the sysctls "vm.swappiness" are not known to be namespaced`)
}
