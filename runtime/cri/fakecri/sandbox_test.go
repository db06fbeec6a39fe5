package fakecri_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/codes"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
)

func TestASandboxLives(t *testing.T) {
	on(t, fakecri.Config{}, func(n *node) {
		id := n.sandbox("a")
		resp, err := n.PodSandboxStatus(n.ctx, id, true)
		require.NoError(n, err)
		st := resp.Status
		assert.Equal(n, runtimeapi.PodSandboxState_SANDBOX_READY, st.State)
		assert.Equal(n, "pod-a", st.Metadata.Name)
		assert.Equal(n, map[string]string{"note": "kept"}, st.Annotations)
		assert.Equal(n, time.Now().UnixNano(), st.CreatedAt)
		assert.Equal(n, "10.0.0.1", st.Network.Ip)
		var info map[string]any
		require.NoError(n, json.Unmarshal([]byte(resp.Info["info"]), &info))
		assert.Equal(n, id, info["sandboxID"])

		for range 2 { // again is no error
			require.NoError(n, n.StopPodSandbox(n.ctx, id))
		}
		resp, err = n.PodSandboxStatus(n.ctx, id, false)
		require.NoError(n, err)
		assert.Equal(n, runtimeapi.PodSandboxState_SANDBOX_NOTREADY, resp.Status.State)
		assert.Empty(n, resp.Status.Network.Ip)
		assert.Empty(n, resp.Info)

		for range 2 {
			require.NoError(n, n.RemovePodSandbox(n.ctx, id))
		}
		_, err = n.PodSandboxStatus(n.ctx, id, false)
		hasCode(n, codes.NotFound, err)
		assert.Empty(n, n.Sandboxes(""))
		assert.NotEqual(n, id, n.sandbox("a"), "the name can be used again, the ID cannot")
	})
}

func TestSandboxesHaveAddressesOfTheirOwn(t *testing.T) {
	on(t, fakecri.Config{}, func(n *node) {
		seen := map[string]bool{}
		for i := range 600 {
			cfg := podConfig("a")
			cfg.Metadata.Attempt = uint32(i)
			_, err := n.RunPodSandbox(n.ctx, cfg, "")
			require.NoError(n, err)
		}
		for _, s := range n.Sandboxes("a") {
			assert.False(n, seen[s.IP], s.IP)
			assert.NotRegexp(n, `\.(0|255)$`, s.IP)
			seen[s.IP] = true
		}
		assert.Len(n, seen, 600)
	})
}

func TestASandboxOnTheHostsNetworkHasNoAddress(t *testing.T) {
	on(t, fakecri.Config{}, func(n *node) {
		cfg := podConfig("a")
		cfg.Linux = &runtimeapi.LinuxPodSandboxConfig{SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{
			NamespaceOptions: &runtimeapi.NamespaceOption{Network: runtimeapi.NamespaceMode_NODE},
		}}
		id, err := n.RunPodSandbox(n.ctx, cfg, "")
		require.NoError(n, err)
		resp, err := n.PodSandboxStatus(n.ctx, id, false)
		require.NoError(n, err)
		assert.Empty(n, resp.Status.Network.Ip)
		assert.Equal(n, runtimeapi.NamespaceMode_NODE, resp.Status.Linux.Namespaces.Options.Network)
	})
}

func TestInvalidSandboxesAreRejected(t *testing.T) {
	on(t, fakecri.Config{Handlers: []string{"sandboxed"}}, func(n *node) {
		first := n.sandbox("a")
		_, err := n.RunPodSandbox(n.ctx, podConfig("a"), "")
		hasCode(n, codes.FailedPrecondition, err)
		assert.ErrorContains(n, err, `"pod-a_ns_a_0" is reserved for "`+first+`"`)

		_, err = n.RunPodSandbox(n.ctx, nil, "")
		hasCode(n, codes.Unknown, err)
		_, err = n.RunPodSandbox(n.ctx, podConfig("b"), "none")
		hasCode(n, codes.Unknown, err)
		_, err = n.RunPodSandbox(n.ctx, podConfig("b"), "sandboxed") // the name was not kept
		assert.NoError(n, err)
	})
}

func TestConfigsAreCopied(t *testing.T) {
	on(t, fakecri.Config{}, func(n *node) {
		cfg := podConfig("a")
		id, err := n.RunPodSandbox(n.ctx, cfg, "")
		require.NoError(n, err)
		cfg.Labels["app"] = "other"
		resp, err := n.PodSandboxStatus(n.ctx, id, false)
		require.NoError(n, err)
		assert.Equal(n, "shop", resp.Status.Labels["app"])
	})
}

func TestTheResourcesOfAPodAreNoted(t *testing.T) {
	on(t, fakecri.Config{}, func(n *node) {
		id := n.sandbox("a")
		_, err := n.UpdatePodSandboxResources(n.ctx, &runtimeapi.UpdatePodSandboxResourcesRequest{
			PodSandboxId: id, Resources: &runtimeapi.LinuxContainerResources{CpuShares: 512},
		})
		require.NoError(n, err)
		resp, err := n.PodSandboxStatus(n.ctx, id, true)
		require.NoError(n, err)
		assert.Contains(n, resp.Info["info"], `"cpu_shares":512`)
		_, err = n.UpdatePodSandboxResources(n.ctx, &runtimeapi.UpdatePodSandboxResourcesRequest{PodSandboxId: "ff"})
		hasCode(n, codes.NotFound, err)
	})
}

func TestASandboxThatDiesLeavesItsContainersRunning(t *testing.T) {
	on(t, fakecri.Config{}, func(n *node) {
		id, sandbox := n.started()
		require.NoError(n, n.KillSandbox("a"))
		assert.Equal(n, fakecri.NotReady, n.Sandboxes("a")[0].State)
		n.runs(id)
		assert.ErrorContains(n, n.KillSandbox("a"), "pod a")
		require.NoError(n, n.StopPodSandbox(n.ctx, sandbox))
		n.exited(id, 137, "Error", 0)
	})
}
