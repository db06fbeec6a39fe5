package eviction

import "maps"

// DefaultHard returns the kubelet's hard thresholds on an operating system, as
// GOOS has it (section 2.1).
func DefaultHard(goos string) map[string]string {
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

// WithDefaults returns s with the default hard thresholds: all of them if s has
// no hard ones at all, else, only if merge says so, those of signals that s does
// not name (mergeDefaultEvictionSettings, ev-9). An s.Hard that is empty but not
// nil asks for none.
func (s Settings) WithDefaults(goos string, merge bool) Settings {
	if s.Hard != nil && !merge {
		return s
	}
	hard := DefaultHard(goos)
	maps.Copy(hard, s.Hard)
	s.Hard = hard
	return s
}
