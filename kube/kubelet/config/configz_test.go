package config

import (
	"testing"
	"time"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"
)

func TestConfigz(t *testing.T) {
	for f := range fields {
		if f.reported == "" {
			continue
		}
		value, ok := f.value(new(kubeletconfig.KubeletConfiguration), true)
		require.True(t, ok, f.name)
		require.NoError(t, yaml.UnmarshalStrict([]byte(f.reported), value.Addr().Interface()), f.name)
		assert.False(t, value.IsZero(), f.name)
	}
	cfg, _, err := Decode([]byte("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nhairpinMode: none\n"))
	require.NoError(t, err)
	all := Configz(cfg)
	assert.Equal(t, "none", all.HairpinMode)
	assert.Equal(t, "/etc/resolv.conf", *all.ResolverConfig)
	assert.True(t, *all.SerializeImagePulls)
	assert.Nil(t, cfg.ResolverConfig, "the original is not changed")
	cfg.MaxParallelImagePulls = new(int32(2))
	assert.False(t, *Configz(cfg).SerializeImagePulls)
}

func TestTheReportFrequencyFollowsTheUpdateFrequency(t *testing.T) {
	for lines, want := range map[string]time.Duration{
		"": 5 * time.Minute, "nodeStatusUpdateFrequency: 20s": 20 * time.Second, "nodeStatusUpdateFrequency: 20s\nnodeStatusReportFrequency: 1m": time.Minute,
	} {
		cfg, _, err := Decode([]byte("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n" + lines))
		require.NoError(t, err)
		Default(cfg) // again, as package kubelet does
		assert.Equal(t, want, cfg.NodeStatusReportFrequency.Duration, lines)
	}
}

func TestFlagValues(t *testing.T) {
	fs := pflag.NewFlagSet("kubelet", pflag.ContinueOnError)
	fs.String("own", "default", "")
	AddFlags(fs, new(kubeletconfig.KubeletConfiguration), new(Flags))
	require.NoError(t, fs.Parse([]string{
		"--max-pods=7", "--v", "2", "--cluster-dns=10.0.0.10", "--cluster-dns=10.0.0.11", "--eviction-hard=a<1", "--eviction-hard=b<2", "--max-pods=8", "--manifest-url-header=a:secret", "--manifest-url=https://u:secret@a/b?c=secret",
	}))
	values := FlagValues(fs)
	for name, want := range map[string]string{
		"own": "default", "max-pods": "8", "v": "2", "cluster-dns": "10.0.0.10,10.0.0.11", "eviction-hard": "a<1,b<2", "sync-frequency": "1m",
		"manifest-url-header": "CLASSIFIED", "manifest-url": "https://a/b", "storage-driver-password": "", "kubeconfig": "",
	} {
		assert.Equal(t, want, values[name], name)
	}
}

func TestMaskedHasNoPartOfACredential(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "http://a/b": "http://a/b", "https://u:p@a:1/b?c=d&e#f": "https://a:1/b", "https://a/b?": "https://a/b", "mailto:secret": "<masked>", "http://[::secret": "<masked>",
	} {
		assert.Equal(t, want, Masked(&kubeletconfig.KubeletConfiguration{StaticPodURL: text}).StaticPodURL, text)
	}
	cfg := &kubeletconfig.KubeletConfiguration{StaticPodURLHeader: map[string][]string{"A": {"x", "y"}, "B": nil}}
	assert.Equal(t, map[string][]string{"A": {"<masked>"}, "B": {"<masked>"}}, Masked(cfg).StaticPodURLHeader)
	assert.Equal(t, []string{"x", "y"}, cfg.StaticPodURLHeader["A"], "the original is not changed")
}
