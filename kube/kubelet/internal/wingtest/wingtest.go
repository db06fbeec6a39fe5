// Package wingtest has the configurations that the tests of the wings of a kubelet have in common.
package wingtest

import (
	"log/slog"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	kubeletconfig "k8s.io/kubelet/config/v1beta1"

	"github.com/kubeparts/kubeparts/kube/kubelet/config"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
	"github.com/kubeparts/kubeparts/kube/kubelet/options"
	"github.com/kubeparts/kubeparts/podworker"
	"github.com/kubeparts/kubeparts/runtime/cri/fakecri"
	"github.com/kubeparts/kubeparts/shutdown"
)

// Decode returns the configuration with these lines.
func Decode(t testing.TB, lines string) *kubeletconfig.KubeletConfiguration {
	t.Helper()
	k, warnings, err := config.Decode([]byte("apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n" + lines))
	if err != nil || len(warnings) > 0 {
		t.Fatalf("decode the configuration: %v, warnings %v", err, warnings)
	}
	return k
}

// Standalone returns a Config in a temporary directory with these lines in its
// configuration, on a CRI runtime in memory.
func Standalone(t testing.TB, lines string) options.Config {
	t.Helper()
	fake, err := fakecri.New(fakecri.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return options.Config{
		Configuration: Decode(t, lines), NodeName: "n1", RootDir: t.TempDir(), Logger: slog.New(slog.DiscardHandler),
		Runtime: options.Runtime{Name: "fakecri", Service: fake, Images: fake, Processes: true},
	}
}

// Base returns the base of the wings for a Config.
func Base(t testing.TB, cfg options.Config) stores.Base {
	t.Helper()
	cfg, err := stores.Complete(cfg)
	if err != nil {
		t.Fatal(err)
	}
	b := stores.Base{
		Config: cfg, Configuration: cfg.Configuration, NodeRef: stores.NodeRef(cfg.NodeName), Record: cfg.Record, Pods: stores.Pods{Table: new(podworker.Table)}, Queues: new(stores.Queues), Shutdown: new(shutdown.State), Health: stores.NewPodPacer(func(types.UID) {}), Logger: cfg.Logger,
	}
	if b.Metrics, err = stores.NewCounters(cfg.NodeName, "v1"); err != nil {
		t.Fatal(err)
	}
	return b
}
