package emptydir

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	statsapi "k8s.io/kubelet/pkg/apis/stats/v1alpha1"

	"github.com/kubeparts/kubeparts/volume"
)

// Quotas makes a file system account for the usage of directories, which is then read instead of
// measured. No limit is set. The methods may be called concurrently for different directories.
type Quotas interface {
	// Assign starts the accounting of dir, an empty directory. It has no effect if dir is
	// accounted for already. It returns an error that wraps errors.ErrUnsupported if the file
	// system has no such accounting.
	Assign(dir string) error

	// Usage returns the number of bytes and of inodes of dir and of everything below it. It
	// returns an error that wraps errors.ErrUnsupported if dir is not accounted for. The
	// accounting of a directory ends when it is removed.
	Usage(dir string) (bytes, inodes uint64, err error)
}

// The IDs of projects that are assigned to volumes. Tools for quotas of users or of images assign
// smaller ones.
const (
	firstProject  = 1<<20 + 1
	projectsTotal = 1 << 20
)

// accounted reports whether the usage of a pod's volume is accounted for: a process that is privileged
// outside of a user namespace can change the project of its files.
func accounted(pod *v1.Pod) bool {
	return pod != nil && pod.Spec.HostUsers != nil && !*pod.Spec.HostUsers
}

// assign starts the accounting of a new volume. If that fails, the volume is measured.
func (p *Plugin) assign(dir string, pod *v1.Pod) {
	if p.cfg.Quotas == nil || !accounted(pod) {
		return
	}
	switch err := p.cfg.Quotas.Assign(dir); {
	case errors.Is(err, errors.ErrUnsupported):
		p.cfg.Logger.Debug("The usage of a volume is measured, since its file system has no project quotas", "pod", pod.Namespace+"/"+pod.Name, "podUID", pod.UID, "path", dir, "err", err)
	case err != nil:
		p.cfg.Logger.Warn("Failed to assign a project quota to a volume; its usage is measured", "pod", pod.Namespace+"/"+pod.Name, "podUID", pod.UID, "path", dir, "err", err)
	}
}

// usage returns the usage of a directory on disk, from its quota if it has one (rule vol-78).
func (p *Plugin) usage(ctx context.Context, dir string) (statsapi.FsStats, error) {
	if p.cfg.Quotas != nil {
		if bytes, inodes, err := p.cfg.Quotas.Usage(dir); err == nil {
			stats, err := volume.FSUsage(dir)
			stats.UsedBytes, stats.InodesUsed = &bytes, &inodes
			return stats, err
		}
	}
	return volume.DiskUsage(ctx, dir)
}

// freeProject returns the first ID, beginning at from and continuing at the beginning of the range, that
// is neither reserved nor used.
func freeProject(from uint32, reserved map[uint32]bool, used func(id uint32) (bool, error)) (uint32, error) {
	for i := range uint32(projectsTotal) {
		id := firstProject + (from-firstProject+i)%projectsTotal
		if reserved[id] {
			continue
		}
		if taken, err := used(id); err != nil {
			return 0, err
		} else if !taken {
			return id, nil
		}
	}
	return 0, fmt.Errorf("no project ID from %d to %d is free", firstProject, firstProject+projectsTotal-1)
}

// maxProjectsFile bounds how much of /etc/projects and /etc/projid is read.
const maxProjectsFile = 1 << 20

// projectIDs adds the IDs in a file like /etc/projects ("id:path", column 0) or /etc/projid
// ("name:id", column 1). Lines of another form are ignored.
func projectIDs(from io.Reader, column int, into map[uint32]bool) error {
	lines := bufio.NewScanner(io.LimitReader(from, maxProjectsFile))
	lines.Buffer(nil, maxProjectsFile)
	for lines.Scan() {
		first, second, ok := strings.Cut(lines.Text(), ":")
		if !ok {
			continue
		}
		id, err := strconv.ParseUint(strings.TrimSpace([]string{first, second}[column]), 10, 32)
		if err == nil {
			into[uint32(id)] = true
		}
	}
	return lines.Err()
}
