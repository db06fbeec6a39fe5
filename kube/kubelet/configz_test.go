package kubelet

import (
	_ "embed"
	"encoding/json"
	"log/slog"
	"net"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/kubeparts/kubeparts/kube/kubelet/config"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/edge"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
	"github.com/kubeparts/kubeparts/runtime"
)

// kubeletConfigz is what /configz of a kubelet 1.37.2 returned for [configzLines].
//
//go:embed testdata/configz-1.37.2.json
var kubeletConfigz []byte

const configzLines = `
staticPodPath: /node/manifests
staticPodURLHeader: {Authorization: [secret]}
podLogsDir: /node/logs
containerRuntimeEndpoint: unix:///node/runtime.sock
cgroupRoot: /kubeparts
cgroupDriver: cgroupfs
failCgroupV1: false
failSwapOn: false
localStorageCapacityIsolation: false
evictionHard: {memory.available: 1Mi, nodefs.available: 1Mi, imagefs.available: 1Mi, nodefs.inodesFree: "1", imagefs.inodesFree: "1"}
imageGCHighThresholdPercent: 100
imageMinimumGCAge: 24h
oomScoreAdj: 0
address: 127.0.0.1
healthzBindAddress: 127.0.0.1
authentication: {anonymous: {enabled: true}, webhook: {enabled: false}}
authorization: {mode: AlwaysAllow}
fileCheckFrequency: 2s
syncFrequency: 10s
resolvConf: ""
clusterDNS: [10.0.0.10]
clusterDomain: cluster.local
logging: {verbosity: 4}
`

func TestConfigzIsThatOfTheKubelet(t *testing.T) {
	b := newBase(t, standalone(t, configzLines))
	of := func(text []byte) map[string]any {
		var all struct {
			Kubeletconfig map[string]any `json:"kubeletconfig"`
		}
		require.NoError(t, json.Unmarshal(text, &all))
		return all.Kubeletconfig
	}
	ours, err := json.Marshal(map[string]any{"kubeletconfig": edge.Configz(b, edge.ServerDeps{})})
	require.NoError(t, err)
	want, got := of(kubeletConfigz), of(ours)
	for name, why := range map[string]string{
		"port": "another on each machine", "readOnlyPort": "likewise", "healthzPort": "likewise",
		"tlsCertFile": "a self-signed certificate is not part of the configuration", "tlsPrivateKeyFile": "likewise",
		"staticPodURLHeader": "masked, since they may be credentials",
		"kubeAPIBurst":       "300, so that a node that reconnects is not delayed",
	} {
		assert.NotEqual(t, want[name], got[name], "%s: %s", name, why)
		delete(want, name)
		delete(got, name)
	}
	if runtime.KubernetesMinor >= 38 {
		delete(got, "clientCertificateKeyAlgorithm")
		delete(got, "serverCertificateKeyAlgorithm")
	}
	assert.Equal(t, want, got)
}

// Of a configuration without any field /configz has the values that are used.
func TestConfigzHasTheDetectedValues(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	b := newBase(t, standalone(t, ""))
	k := edge.Configz(b, edge.ServerDeps{Cluster: new(stores.Cluster), Ports: stores.Ports{API: l}})
	assert.EqualValues(t, l.Addr().(*net.TCPAddr).Port, k.Port)
	assert.Zero(t, *k.HealthzPort)
	assert.Equal(t, "cgroupfs", k.CgroupDriver)
	assert.Equal(t, kubeletconfig.KubeletAuthorizationModeWebhook, k.Authorization.Mode)
	assert.True(t, *k.Authentication.Webhook.Enabled)
	assert.False(t, *edge.Configz(b, edge.ServerDeps{}).Authentication.Webhook.Enabled, "standalone")
	assert.Zero(t, b.Configuration.Port, "the original is not changed")
	_, warnings, err := config.Decode(mustJSON(t, k))
	require.NoError(t, err, "it can be used as a configuration")
	assert.NotEmpty(t, warnings)
}

func mustJSON(t *testing.T, v any) []byte {
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return text
}

// Headers of the URL of manifests, and parts of the URL, may be credentials.
func TestCredentialsAreMaskedInConfigzAndInTheLog(t *testing.T) {
	cfg := standalone(t, "staticPodURL: http://user:secret@a:1/pods?token=secret#secret\nstaticPodURLHeader: {Authorization: [Bearer secret]}\n")
	b := newBase(t, cfg)
	k := edge.Configz(b, edge.ServerDeps{})
	assert.Equal(t, map[string][]string{"Authorization": {"<masked>"}}, k.StaticPodURLHeader)
	assert.Equal(t, "http://a:1/pods", k.StaticPodURL)
	assert.Equal(t, []string{"Bearer secret"}, b.Configuration.StaticPodURLHeader["Authorization"], "the original is not changed")

	var text strings.Builder
	b.Config.Logger = slog.New(slog.NewTextHandler(&text, nil))
	stores.LogConfiguration(t.Context(), b.Config)
	assert.Contains(t, text.String(), "<masked>")
	assert.NotContains(t, text.String(), "secret")
}
