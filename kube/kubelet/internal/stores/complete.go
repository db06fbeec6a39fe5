package stores

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	goruntime "runtime"
	"strings"

	kubeletconfig "k8s.io/kubelet/config/v1beta1"
	"sigs.k8s.io/yaml"

	"github.com/kubeparts/kubeparts/compose"
	"github.com/kubeparts/kubeparts/kube/kubelet/config"
	"github.com/kubeparts/kubeparts/kube/kubelet/options"
	"github.com/kubeparts/kubeparts/runtime"
)

const defaultEndpoint = "unix:///run/containerd/containerd.sock"

// Complete returns the Config with defaults, or an error that names an invalid field.
func Complete(c options.Config) (options.Config, error) {
	k := new(kubeletconfig.KubeletConfiguration)
	if c.Configuration != nil {
		k = c.Configuration.DeepCopy()
	}
	config.Default(k)
	c.Configuration = k
	if err := Validate(k); err != nil {
		return c, err
	}
	if c.NodeName == "" {
		host, err := os.Hostname()
		if err != nil {
			return c, fmt.Errorf("Config.NodeName is empty: %w", err)
		}
		c.NodeName = strings.ToLower(host)
	}
	var err error
	if c.RootDir, err = filepath.Abs(cmp.Or(c.RootDir, "/var/lib/kubelet")); err != nil {
		return c, fmt.Errorf("Config.RootDir: %w", err)
	}
	if c.Runtime.Service == nil && c.Runtime.New == nil {
		k.ContainerRuntimeEndpoint = cmp.Or(k.ContainerRuntimeEndpoint, defaultEndpoint)
		c.Runtime.Processes = k.ContainerRuntimeEndpoint == options.ProcessRuntime
	}
	if k.PodLogsDir == "" && (c.Runtime.Processes || c.Runtime.New != nil) {
		k.PodLogsDir = filepath.Join(c.RootDir, "log", "pods")
	}
	k.PodLogsDir = cmp.Or(k.PodLogsDir, "/var/log/pods")
	c.Host.DevicePluginsDir = cmp.Or(c.Host.DevicePluginsDir, filepath.Join(c.RootDir, "device-plugins"))
	c.Host.PodResourcesDir = cmp.Or(c.Host.PodResourcesDir, filepath.Join(c.RootDir, "pod-resources"))
	c.Cluster.Version = cmp.Or(c.Cluster.Version, options.Version)
	c.Cluster.CertDir = cmp.Or(c.Cluster.CertDir, filepath.Join(c.RootDir, "pki"))
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	if c.Notify == nil {
		c.Notify = func(string) {}
	}
	if c.Record == nil {
		c.Record = func(runtime.Event) {}
	}
	if err := check(c); err != nil {
		return c, err
	}
	if c.Runtime.New != nil {
		markNode(&c)
	}
	return c, nil
}

func check(c options.Config) error {
	if err := compose.CheckAdjust(c.Adjust, options.Adjustable()...); err != nil {
		return err
	}
	if r := c.Runtime; r.New != nil || r.Node != nil {
		if err := checkGiven(c); err != nil {
			return err
		}
	}
	k := c.Configuration
	switch endpoint := k.ContainerRuntimeEndpoint; {
	case c.Runtime.Service != nil && (c.Runtime.Images == nil || c.Runtime.Name == ""):
		return errors.New("Config.Runtime has no Images or no Name")
	case c.Runtime.Service == nil && c.Runtime.New == nil && endpoint != options.ProcessRuntime && !strings.HasPrefix(endpoint, "unix://"):
		return fmt.Errorf("containerRuntimeEndpoint is %q: want a socket such as %s, or %s", endpoint, defaultEndpoint, options.ProcessRuntime)
	case (c.Runtime.CredentialProviderConfig == "") != (c.Runtime.CredentialProviderBinDir == ""):
		return errors.New("only one of Config.Runtime.CredentialProviderConfig and Config.Runtime.CredentialProviderBinDir is set")
	case c.Cluster.InCluster && (c.Cluster.Kubeconfig != "" || c.Cluster.BootstrapKubeconfig != ""):
		return errors.New("Config.Cluster.InCluster excludes a kubeconfig")
	case c.Cluster.BootstrapKubeconfig != "" && c.Cluster.Kubeconfig == "":
		return errors.New("Config.Cluster.BootstrapKubeconfig requires Kubeconfig, which it creates")
	case c.Objects.Source != nil && (c.Objects.Dir != "" || Clustered(c)):
		return errors.New("Config.Objects.Source excludes Config.Objects.Dir and Config.Cluster")
	case c.Cluster.CheckpointPods && !Clustered(c):
		return errors.New("Config.Cluster.CheckpointPods requires a Kubeconfig, InCluster or a Client")
	}
	return nil
}

// LogConfiguration logs the Configuration with its defaults, masked.
func LogConfiguration(ctx context.Context, c options.Config) {
	if !c.Logger.Enabled(ctx, slog.LevelInfo) {
		return
	}
	effective := config.Masked(c.Configuration)
	effective.APIVersion, effective.Kind = kubeletconfig.SchemeGroupVersion.String(), "KubeletConfiguration"
	text, _ := yaml.Marshal(effective) // a KubeletConfiguration can be encoded
	c.Logger.Info("Effective KubeletConfiguration", "config", string(text))
}

// Clustered reports whether the kubelet is a node of a cluster.
func Clustered(c options.Config) bool {
	return c.Cluster.Client != nil || c.Cluster.Kubeconfig != "" || c.Cluster.InCluster
}

// MaxPods returns the largest number of pods of the node (rule ns-12).
func MaxPods(c options.Config) int32 {
	k := c.Configuration
	if k.PodsPerCore > 0 {
		cores := min(int64(k.PodsPerCore)*int64(goruntime.NumCPU()), math.MaxInt32)
		return min(k.MaxPods, int32(cores))
	}
	return k.MaxPods
}
