package statuspage

import (
	"context"
	"fmt"
	"os"
	"time"

	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/agent/statuspage/internal/page"
)

// nodeTimeout bounds the measurements that a page waits for.
const nodeTimeout = 2 * time.Second

// node returns the state of the node. Measurements that fail or are not complete in time
// are left out and reported as problems.
func (h *Handler) node(ctx context.Context) page.Node {
	ctx, cancel := context.WithTimeout(ctx, nodeTimeout)
	defer cancel()
	n := page.Node{Name: h.cfg.NodeName, Runtime: h.cfg.Runtime, At: time.Now(), Started: h.started, Agent: ownMemory()}
	for _, c := range h.cfg.Checks {
		result := page.Check{Name: c.Name}
		if err := c.run(); err != nil {
			result.Err = err.Error()
		}
		n.Checks = append(n.Checks, result)
	}
	if h.cfg.Evictions != nil {
		for _, c := range h.cfg.Evictions.Conditions() {
			n.Conditions = append(n.Conditions, string(c))
		}
	}
	if err := unsynced(h.cfg.Agent); err != nil {
		n.Problems = append(n.Problems, err.Error())
	}
	usage, err := h.usage(ctx)
	if err != nil {
		n.Problems = append(n.Problems, "The usage of pods is not known: "+err.Error())
	}
	hiders := map[string]func(string) string{} // by UID
	for _, s := range h.cfg.Agent.Table().States() {
		pod := h.pod(s, usage)
		if pod == nil {
			continue
		}
		if s.Pod != nil {
			hide := hiderOf(s.Pod)
			hiders[pod.UID], *pod = hide, mapText(*pod, hide)
		}
		n.Pods = append(n.Pods, *pod)
	}
	n.Events = h.cfg.History.lastEvents()
	for i := range n.Events {
		if hide := hiders[n.Events[i].UID]; hide != nil {
			n.Events[i].Message = hide(n.Events[i].Message)
		}
	}
	if n.Signals, err = h.signals(); err != nil {
		n.Problems = append(n.Problems, "The resources of the node could not be measured: "+err.Error())
	}
	n.Images = h.imagePlan(ctx, n.At)
	return n
}

// signals returns the measurements of the node with the thresholds for evictions, and
// the error of the last measurement.
func (h *Handler) signals() ([]page.Signal, error) {
	if h.cfg.Evictions == nil {
		return h.cfg.History.lastSignals(nil)
	}
	return h.cfg.History.lastSignals(h.cfg.Evictions.Policy().Thresholds)
}

// usage returns the usage of pods by UID, which may be known in part if err is not nil.
func (h *Handler) usage(ctx context.Context) (map[string]statsapi.PodStats, error) {
	if h.cfg.Stats == nil {
		return nil, nil
	}
	summary, err := h.cfg.Stats.Summary(ctx, false)
	if summary == nil {
		return nil, err
	}
	usage := map[string]statsapi.PodStats{}
	for _, s := range summary.Pods {
		usage[s.PodRef.UID] = s
	}
	return usage, nil
}

// ownMemory returns how much anonymous and how much resident memory this process has; "" on systems
// without /proc.
func ownMemory() string {
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return ""
	}
	var size, resident, shared int64 // pages
	if _, err := fmt.Sscan(string(statm), &size, &resident, &shared); err != nil {
		return ""
	}
	mebibytes := func(pages int64) int64 { return pages * int64(os.Getpagesize()) >> 20 }
	return fmt.Sprintf("%d MiB of anonymous memory (%d MiB resident)", mebibytes(resident-shared), mebibytes(resident))
}
