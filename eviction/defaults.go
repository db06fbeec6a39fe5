package eviction

import "maps"

// defaultHard returns the kubelet's hard thresholds on an operating system (GOOS).
func defaultHard(goos string) map[string]string {
	d := map[string]string{
		string(MemoryAvailable):  "100Mi",
		string(NodeFSAvailable):  "10%",
		string(ImageFSAvailable): "15%",
	}
	switch goos {
	case "windows":
		d[string(MemoryAvailable)] = "500Mi"
	default:
		d[string(NodeFSInodesFree)] = "5%"
		d[string(ImageFSInodesFree)] = "5%"
	}
	return d
}

// WithDefaults returns s with the kubelet's default hard thresholds for an operating system
// (GOOS): all of them if s.Hard is nil; otherwise, if merge is set
// (mergeDefaultEvictionSettings), those of the signals that s.Hard lacks, and none if it is
// not set. An empty, non-nil s.Hard therefore means no hard thresholds.
func (s Settings) WithDefaults(goos string, merge bool) Settings {
	if s.Hard != nil && !merge {
		return s
	}
	hard := defaultHard(goos)
	maps.Copy(hard, s.Hard)
	s.Hard = hard
	return s
}
