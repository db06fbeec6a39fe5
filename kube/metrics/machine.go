package metrics

import (
	"fmt"
	"io/fs"
	"strconv"
	"strings"
)

// deviceName returns the name of a block device, below /dev; "" if it is unknown.
func deviceName(root fs.FS, major, minor uint32) string {
	if root == nil {
		return ""
	}
	text, err := fs.ReadFile(root, fmt.Sprintf("sys/dev/block/%d:%d/uevent", major, minor))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "DEVNAME="); ok {
			return "/dev/" + name
		}
	}
	return ""
}

// deviceOf returns the mount source of the file system of a path, from a
// /proc/self/mountinfo: a device, or a name such as "overlay" or "tmpfs".
func deviceOf(mountinfo []byte, path string) string {
	device, longest := "", ""
	for line := range strings.Lines(string(mountinfo)) {
		before, after, ok := strings.Cut(line, " - ")
		fields, kind := strings.Fields(before), strings.Fields(after)
		if !ok || len(fields) < 5 || len(kind) < 2 {
			continue
		}
		// Of several mounts at one path the last one is visible.
		if at := unescape(fields[4]); path != "" && len(at) >= len(longest) && isBelow(path, at) {
			device, longest = unescape(kind[1]), at
		}
	}
	return device
}

func isBelow(path, dir string) bool {
	return dir == "/" || path == dir || strings.HasPrefix(path, dir+"/")
}

// unescape reverses the escaping of the kernel, such as "\\040" for a space.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+4 <= len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// A link has the packet counts of a network interface.
type link struct {
	name                                        string
	received, receiveDropped, sent, sendDropped uint64
}

// ignoredLinks are prefixes of interfaces that are not reported, as with the kubelet: the
// loopback, and interfaces of pods, whose number is not bounded.
var ignoredLinks = []string{"lo", "veth", "docker", "nerdctl"}

// interfaces parses a /proc/net/dev.
func interfaces(text string) (all []link) {
	for line := range strings.Lines(text) {
		name, rest, ok := strings.Cut(strings.TrimSpace(line), ":")
		fields := strings.Fields(rest)
		if !ok || len(fields) < 12 || ignored(name) {
			continue
		}
		l := link{name: name}
		good := true
		for i, of := range map[int]*uint64{1: &l.received, 3: &l.receiveDropped, 9: &l.sent, 11: &l.sendDropped} {
			n, err := strconv.ParseUint(fields[i], 10, 64)
			*of, good = n, good && err == nil
		}
		if good {
			all = append(all, l)
		}
	}
	return all
}

func ignored(link string) bool {
	for _, prefix := range ignoredLinks {
		if strings.HasPrefix(link, prefix) {
			return true
		}
	}
	return false
}
