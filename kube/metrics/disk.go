package metrics

import (
	"context"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/kube/metrics/internal/family"
	"github.com/kubeparts/kubeparts/volume"
)

// diskMetrics are the metrics of volumes of claims (rule vol-80) and of container logs.
type diskMetrics struct {
	capacity, available, used, inodes, inodesFree, inodesUsed *prometheus.Desc
	abnormal                                                  *prometheus.Desc
	logs                                                      *prometheus.Desc

	mu             sync.Mutex // guards the field below
	abnormalClaims map[statsapi.PVCReference]bool
}

func (d *diskMetrics) declare(s *family.Set) {
	claim := func(from, name, help string) *prometheus.Desc {
		return s.Desc(from, "kubelet_volume_stats_"+name, "gauge", help, "namespace", "persistentvolumeclaim")
	}
	d.capacity = claim("Sources.Stats.Summary", "capacity_bytes", "Size of the volume's file system.")
	d.available = claim("Sources.Stats.Summary", "available_bytes", "Available bytes of the volume's file system.")
	d.used = claim("Sources.Stats.Summary", "used_bytes", "Used bytes of the volume's file system.")
	d.inodes = claim("Sources.Stats.Summary", "inodes", "Total inodes of the volume's file system.")
	d.inodesFree = claim("Sources.Stats.Summary", "inodes_free", "Free inodes of the volume's file system.")
	d.inodesUsed = claim("Sources.Stats.Summary", "inodes_used", "Used inodes of the volume.")
	d.abnormal = claim("volume.Hooks.Measured", "health_status_abnormal", "1 if the volume's driver reports it as abnormal.")
	d.logs = s.Desc("Sources.Stats.Summary", "kubelet_container_log_filesystem_used_bytes", "gauge", "Bytes used by the container's logs.", "uid", "namespace", "pod", "container")
	d.abnormalClaims = map[statsapi.PVCReference]bool{}
}

// measured stores the health of a volume, which is not in the summary.
func (d *diskMetrics) measured(i volume.MeasuredInfo) {
	if i.Spec == nil || i.Spec.Claim == nil || i.Stats.Abnormal == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.abnormalClaims[statsapi.PVCReference{Name: i.Spec.Claim.Name, Namespace: i.Spec.Claim.Namespace}] = *i.Stats.Abnormal
}

func (m *Metrics) collectDisks(ctx context.Context, s *Sources, out sink) {
	if s.Stats.Summary == nil {
		return
	}
	summary, _ := s.Stats.Summary(ctx, false) // resource_scrape_error reports its error
	if summary == nil {
		return
	}
	d, seen := &m.disks, map[statsapi.PVCReference]bool{}
	for i := range summary.Pods {
		p := &summary.Pods[i]
		for j := range p.VolumeStats {
			v := &p.VolumeStats[j]
			if v.PVCRef == nil || seen[*v.PVCRef] {
				continue
			}
			seen[*v.PVCRef] = true
			d.volume(out, &v.FsStats, v.PVCRef.Namespace, v.PVCRef.Name)
		}
		for j := range p.Containers {
			if l := p.Containers[j].Logs; l != nil && l.UsedBytes != nil {
				out.gauge(d.logs, float64(*l.UsedBytes), p.PodRef.UID, p.PodRef.Namespace, p.PodRef.Name, p.Containers[j].Name)
			}
		}
	}
	d.health(out, seen)
}

func (d *diskMetrics) volume(out sink, s *statsapi.FsStats, labels ...string) {
	for _, of := range []struct {
		desc  *prometheus.Desc
		value *uint64
	}{
		{d.capacity, s.CapacityBytes}, {d.available, s.AvailableBytes}, {d.used, s.UsedBytes},
		{d.inodes, s.Inodes}, {d.inodesFree, s.InodesFree}, {d.inodesUsed, s.InodesUsed},
	} {
		if of.value != nil {
			out.gauge(of.desc, float64(*of.value), labels...)
		}
	}
}

// health sends the health of the existing volumes, and removes that of others.
func (d *diskMetrics) health(out sink, existing map[statsapi.PVCReference]bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for ref, sick := range d.abnormalClaims {
		if !existing[ref] {
			delete(d.abnormalClaims, ref)
			continue
		}
		out.gauge(d.abnormal, number(sick), ref.Namespace, ref.Name)
	}
}
