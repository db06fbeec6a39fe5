package images

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"
)

// records stores the credentials with which images were pulled, in files and in memory. A file
// that cannot be read counts as a pull with unknown credentials, so pods must pull the image
// again.
type records struct {
	dir string
	log *slog.Logger

	// mu guards the fields below and the files.
	mu      sync.Mutex
	pulled  map[string]*pulledRecord // by image reference; a cache of the files
	running map[string]int           // number of pulls in progress, by image
	lost    map[string]time.Time     // pulls with unknown outcome, since when, by image; nil before they were read
}

func newRecords(dir string, log *slog.Logger) *records {
	return &records{dir: dir, log: log, pulled: map[string]*pulledRecord{}, running: map[string]int{}}
}

func (r *records) intentFile(image string) string {
	return filepath.Join(r.dir, "pulling", fileOf(image))
}

func (r *records) pulledFile(ref string) string { return filepath.Join(r.dir, "pulled", fileOf(ref)) }

// begin records that a pull begins. Each call must be followed by one of end.
func (r *records) begin(image string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.readUnsettledLocked()
	r.running[image]++
	if r.running[image] > 1 || r.isUnsettledLocked(image) {
		return nil
	}
	if err := write(r.intentFile(image), intent{Kind: intentKind, APIVersion: recordVersion, Image: image}); err != nil {
		r.decrementLocked(image)
		return fmt.Errorf("failed to record the intent to pull: %w", err)
	}
	return nil
}

// An outcome is the outcome of a pull.
type outcome int

const (
	pullFailed  outcome = iota
	pullDone            // succeeded and was recorded
	pullUnknown         // the result was lost: the image may be present
)

// end records that a pull ended. The intent is kept if the outcome is unknown.
func (r *records) end(image string, how outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch how {
	case pullUnknown:
		r.lost[image] = time.Now()
	case pullDone:
		delete(r.lost, image)
	}
	r.decrementLocked(image)
	if r.running[image] == 0 && !r.isUnsettledLocked(image) {
		r.removeLocked(r.intentFile(image))
	}
}

func (r *records) decrementLocked(image string) {
	if r.running[image]--; r.running[image] <= 0 {
		delete(r.running, image)
	}
}

// add records that the image may be used with a credential, nil meaning with none. If pulled is
// set, the time of the record is updated even if it has the credential.
func (r *records) add(image, ref string, c *Credential, pulled bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	old := r.getLocked(ref)
	if old == nil {
		old = newPulled(ref)
	}
	next := old.with(repository(image), c)
	if next == old {
		if !pulled {
			return nil
		}
		again := *old
		again.LastUpdatedTime = newPulled(ref).LastUpdatedTime
		next = &again
	}
	return r.putLocked(next)
}

func (r *records) putLocked(record *pulledRecord) error {
	if err := write(r.pulledFile(record.ImageRef), record); err != nil {
		return fmt.Errorf("failed to record the pull: %w", err)
	}
	r.pulled[record.ImageRef] = record
	return nil
}

// get returns the record of the image reference; nil if there is none. Records are immutable.
func (r *records) get(ref string) *pulledRecord {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.getLocked(ref)
}

func (r *records) getLocked(ref string) *pulledRecord {
	if cached := r.pulled[ref]; cached != nil {
		return cached
	}
	path := r.pulledFile(ref)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var record *pulledRecord
	if err == nil {
		record, err = parsePulled(data)
	}
	if err == nil && record.ImageRef != ref {
		err = fmt.Errorf("imageRef is %q, but the file name is that of %q", record.ImageRef, ref)
	}
	if err != nil {
		r.log.Warn("Failed to read record of image pull, pods must present credentials again", "file", path, "err", err)
		record = newPulled(ref)
	}
	r.pulled[ref] = record
	return record
}

// pulling reports whether a pull of the image is in progress or has an unknown outcome.
func (r *records) pulling(image string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.readUnsettledLocked()
	return r.running[image] > 0 || r.isUnsettledLocked(image)
}

// unsettled returns the images of pulls with unknown outcome, sorted: the agent was killed, or the pull
// was canceled.
func (r *records) unsettled() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.readUnsettledLocked()
	var images []string
	for image := range r.lost {
		if r.running[image] == 0 {
			images = append(images, image)
		}
	}
	slices.Sort(images)
	return images
}

// abandonAfter is the time after a lost pull during which the runtime may still complete it.
const abandonAfter = time.Hour

// settle replaces the intent of a lost pull with a record without credentials if the image is
// present with the reference ref: it was pulled by this node, and pods must present
// credentials. If ref is "", the image may still appear until abandonAfter.
func (r *records) settle(image, ref string, now time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	since, ok := r.lost[image]
	if r.running[image] > 0 || !ok {
		return nil // another pull is in progress
	}
	if ref == "" && now.Sub(since) < abandonAfter {
		return nil
	}
	if ref != "" && r.getLocked(ref) == nil {
		if err := r.putLocked(newPulled(ref)); err != nil {
			return err
		}
	}
	delete(r.lost, image)
	r.removeLocked(r.intentFile(image))
	return nil
}

func (r *records) isUnsettledLocked(image string) bool {
	_, ok := r.lost[image]
	return ok
}

// readUnsettledLocked reads the intents of an earlier process.
func (r *records) readUnsettledLocked() {
	if r.lost != nil {
		return
	}
	r.lost = map[string]time.Time{}
	dir := filepath.Join(r.dir, "pulling")
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.log.Warn("Failed to read records of image pulls in progress", "dir", dir, "err", err)
	}
	for _, e := range entries {
		if !isRecord(e.Name()) {
			continue // another file, or a temporary one
		}
		path := filepath.Join(dir, e.Name())
		data, err := os.ReadFile(path)
		var i *intent
		if err == nil {
			i, err = parseIntent(data)
		}
		since := time.Now()
		if about, err := e.Info(); err == nil {
			since = about.ModTime()
		}
		if err == nil && fileOf(i.Image) != e.Name() {
			err = fmt.Errorf("the file name is not that of image %q", i.Image)
		}
		if err != nil {
			r.log.Warn("Ignored unreadable record of image pull in progress", "file", path, "err", err)
			continue
		}
		r.lost[i.Image] = since
	}
}

// prune deletes records of images that are not present and whose last update was before the
// given time.
func (r *records) prune(present map[string]bool, before time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	dir := filepath.Join(r.dir, "pulled")
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("images: prune records: %w", err)
	}
	var errs []error
	for _, e := range entries {
		if !isRecord(e.Name()) {
			continue
		}
		path := filepath.Join(dir, e.Name())
		data, err := os.ReadFile(path)
		if err != nil {
			errs = append(errs, err)
			continue
		}
		record, err := parsePulled(data)
		if err != nil {
			r.log.Warn("Ignored unreadable record of image pull", "file", path, "err", err)
			continue
		}
		if present[record.ImageRef] || record.LastUpdatedTime.Add(time.Second).After(before) { // LastUpdatedTime is truncated to seconds
			continue
		}
		if err := os.Remove(path); err != nil {
			errs = append(errs, err)
			continue
		}
		delete(r.pulled, record.ImageRef)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("images: prune records: %w", err)
	}
	return nil
}

func (r *records) removeLocked(path string) {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.log.Warn("Failed to remove record of image pull in progress", "file", path, "err", err)
	}
}

// Prune deletes the records of removed images: those whose IDs are not in present and whose
// record was last written before the given time, which must be earlier than the listing of
// present. Image garbage collection should call it. Records that are not pruned remain correct
// if the image is pulled again.
func (m *Manager) Prune(present []string, before time.Time) error {
	if m.records == nil {
		return nil
	}
	ids := make(map[string]bool, len(present))
	for _, id := range present {
		ids[id] = true
	}
	return m.records.prune(ids, before)
}
