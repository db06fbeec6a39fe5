package metrics

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/kube/metrics/internal/family"
)

// diskMetrics are the metrics of volumes of claims (rule vol-80) and of container logs.
type diskMetrics struct {
	capacity, available, used, inodes, inodesFree, inodesUsed *prometheus.Desc
	logs                                                      *prometheus.Desc
}

func (d *diskMetrics) declare(s *family.Set) {
	const summary = "Sources.Stats.Summary"
	claim := func(name, help string) *prometheus.Desc {
		return s.Desc(summary, "kubelet_volume_stats_"+name, "gauge", help, "namespace", "persistentvolumeclaim")
	}
	d.capacity = claim("capacity_bytes", "Size of the volume's file system.")
	d.available = claim("available_bytes", "Available bytes of the volume's file system.")
	d.used = claim("used_bytes", "Used bytes of the volume's file system.")
	d.inodes = claim("inodes", "Total inodes of the volume's file system.")
	d.inodesFree = claim("inodes_free", "Free inodes of the volume's file system.")
	d.inodesUsed = claim("inodes_used", "Used inodes of the volume.")
	d.logs = s.Desc(summary, "kubelet_container_log_filesystem_used_bytes", "gauge", "Bytes used by the container's logs.", "uid", "namespace", "pod", "container")
}

func (m *Metrics) collectDisks(ctx context.Context, s *Sources, out sink) {
	if s.Stats == nil {
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
