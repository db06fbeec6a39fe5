package podspec

import (
	"errors"
	"io/fs"
	"path"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
)

// HugePagesDir is the directory of sysfs with the huge pages of the whole machine.
const HugePagesDir = "sys/kernel/mm/hugepages"

// IsHugePages reports whether a resource is huge pages of some size.
func IsHugePages(name v1.ResourceName) bool {
	return strings.HasPrefix(string(name), v1.ResourceHugePagesPrefix)
}

// HugePagesName returns the resource of huge pages of that size in bytes: "hugepages-2Mi".
func HugePagesName(size int64) v1.ResourceName {
	return v1.ResourceName(v1.ResourceHugePagesPrefix + resource.NewQuantity(size, resource.BinarySI).String())
}

// HugePagesSize returns the page size in bytes of a resource; 0 if the resource is not huge
// pages or its name has no valid size.
func HugePagesSize(name v1.ResourceName) int64 {
	size, ok := strings.CutPrefix(string(name), v1.ResourceHugePagesPrefix)
	if !ok {
		return 0
	}
	q, err := resource.ParseQuantity(size)
	if err != nil {
		return 0
	}
	return q.Value()
}

// ReadHugePages returns the number of huge pages in a directory of sysfs, [HugePagesDir] or that of a
// NUMA node, by page size in bytes; nil if the directory does not exist. A negative
// number counts as zero. It returns an error if a number cannot be read.
func ReadHugePages(root fs.FS, dir string) (map[int64]int64, error) {
	entries, err := fs.ReadDir(root, dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var pages map[int64]int64
	for _, entry := range entries {
		size, ok := strings.CutPrefix(entry.Name(), "hugepages-")
		kilobytes, err := strconv.ParseInt(strings.TrimSuffix(size, "kB"), 10, 53)
		if !ok || err != nil || kilobytes <= 0 {
			continue
		}
		file := path.Join(dir, entry.Name(), "nr_hugepages")
		text, err := fs.ReadFile(root, file)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
		count := 0
		if err == nil {
			if count, err = strconv.Atoi(strings.TrimSpace(string(text))); err != nil {
				return nil, &fs.PathError{Op: "parse", Path: file, Err: err}
			}
		}
		if pages == nil {
			pages = map[int64]int64{}
		}
		pages[kilobytes<<10] = int64(max(count, 0))
	}
	return pages, nil
}
