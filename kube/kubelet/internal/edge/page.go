package edge

import (
	"encoding/json"
	"maps"
	"net/http"
	"strconv"

	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/agent"
	"github.com/kubeparts/kubeparts/agent/statuspage"
	"github.com/kubeparts/kubeparts/cm/stats"
	"github.com/kubeparts/kubeparts/eviction"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/machine"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/podwing"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/stores"
	"github.com/kubeparts/kubeparts/kube/kubelet/internal/volumes"
)

type pageDeps struct {
	agent     *agent.Agent
	history   *statuspage.History
	runtime   string // its name for operators
	sources   podwing.Sources
	volumes   *volumes.Volumes
	evictions *eviction.Manager
	images    *machine.NodeImages
	stats     *stats.Collector
	metrics   map[string]http.Handler
}

// newStatusPage constructs the status page.
func newStatusPage(b stores.Base, d pageDeps) (http.Handler, error) {
	handlers := map[string]http.Handler{"/stats/summary": summaryHandler(d.stats)}
	maps.Copy(handlers, d.metrics)
	checks := append(statuspage.AgentChecks(d.agent),
		statuspage.Check{Name: "manifests", Check: d.sources.Err}, statuspage.Check{Name: "evictions", Check: d.evictions.Healthy})
	for i, c := range checks {
		checks[i].Check = b.Metrics.Check("healthz", c.Name, c.Check)
	}
	return statuspage.New(statuspage.Config{
		Agent: d.agent, History: d.history, NodeName: b.Config.NodeName, Runtime: d.runtime, Checks: checks,
		Volumes: d.volumes.Manager, Evictions: d.evictions, Images: d.images.Manager(), Stats: d.stats, Handlers: handlers, Logger: b.Logger,
	})
}

// summaryHandler serves /stats/summary, in full or with only_cpu_and_memory=true (rules
// st-3, st-15).
func summaryHandler(c *stats.Collector) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		only, _ := strconv.ParseBool(r.URL.Query().Get("only_cpu_and_memory"))
		summary, err := (*statsapi.Summary)(nil), error(nil)
		if only {
			summary, err = c.CPUAndMemory(r.Context())
		} else {
			summary, err = c.Summary(r.Context(), false)
		}
		if summary == nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		enc := json.NewEncoder(w)
		enc.SetIndent("", "  ")
		_ = enc.Encode(summary) // fails only if the client has closed the connection
	})
}
