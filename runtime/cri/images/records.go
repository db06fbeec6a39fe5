package images

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// records remembers who pulled what, in files and in memory. It fails safe: a
// file that cannot be read counts as a pull of which nothing is known, so that
// the image is pulled again for whoever wants it.
type records struct {
	dir string
	log *slog.Logger

	// mu guards the fields below, and the files.
	mu     sync.Mutex
	pulled map[string]*pulledRecord // by image reference, as far as they were asked for
	under  map[string]int           // pulls under way, by image
	loose  map[string]time.Time     // intents of pulls of which the end is not known, since when; nil: not read yet
}

func newRecords(dir string, log *slog.Logger) *records {
	return &records{dir: dir, log: log, pulled: map[string]*pulledRecord{}, under: map[string]int{}}
}

func (r *records) intentFile(image string) string {
	return filepath.Join(r.dir, "pulling", fileOf(image))
}

func (r *records) pulledFile(ref string) string { return filepath.Join(r.dir, "pulled", fileOf(ref)) }

// begin notes that a pull begins (img-6). Each is followed by one end.
func (r *records) begin(image string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.readLooseLocked()
	r.under[image]++
	if r.under[image] > 1 || r.isLooseLocked(image) {
		return nil
	}
	if err := write(r.intentFile(image), intent{Kind: intentKind, APIVersion: recordVersion, Image: image}); err != nil {
		r.dropLocked(image)
		return fmt.Errorf("failed to record the intent to pull: %w", err)
	}
	return nil
}

// An outcome is how a pull ended.
type outcome int

const (
	pullFailed  outcome = iota
	pullDone            // and recorded
	pullUnknown         // the answer was lost: the image may be there
)

// end notes that a pull ended. The intent stays behind if nobody knows how.
func (r *records) end(image string, how outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch how {
	case pullUnknown:
		r.loose[image] = time.Now()
	case pullDone:
		delete(r.loose, image)
	}
	r.dropLocked(image)
	if r.under[image] == 0 && !r.isLooseLocked(image) {
		r.removeLocked(r.intentFile(image))
	}
}

func (r *records) dropLocked(image string) {
	if r.under[image]--; r.under[image] <= 0 {
		delete(r.under, image)
	}
}

// add notes that the image may be used with a credential; nil is without any.
// If it was pulled just now, the record says so even if it knew the credential.
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

// get returns what is known of pulls of the image with that reference; nil if
// there was none. Records are not changed, but replaced.
func (r *records) get(ref string) *pulledRecord {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.getLocked(ref)
}

func (r *records) getLocked(ref string) *pulledRecord {
	if known := r.pulled[ref]; known != nil {
		return known
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
		err = fmt.Errorf("it is of %q, its name is that of %q", record.ImageRef, ref)
	}
	if err != nil {
		r.log.Warn("record of a pull is not readable, credentials have to be shown again", "file", path, "err", err)
		record = newPulled(ref)
	}
	r.pulled[ref] = record
	return record
}

// pulling reports whether a pull of the image is under way, or one was of which
// nobody knows the end.
func (r *records) pulling(image string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.readLooseLocked()
	return r.under[image] > 0 || r.isLooseLocked(image)
}

// unsettled returns the images whose pulls ended nobody knows how: that of an
// agent that died, or one that was called off.
func (r *records) unsettled() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.readLooseLocked()
	var images []string
	for image := range r.loose {
		if r.under[image] == 0 {
			images = append(images, image)
		}
	}
	return images
}

// abandon is how long after the end of a pull a runtime may still go on with it.
const abandon = time.Hour

// settle makes of an intent a record without credentials if there is an image,
// with that reference: it came by our doing, and who wants it has to show theirs.
// An image that is not there may still come.
func (r *records) settle(image, ref string, now time.Time) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	since, ok := r.loose[image]
	if r.under[image] > 0 || !ok {
		return nil // it is being pulled again, which will tell
	}
	if ref == "" && now.Sub(since) < abandon {
		return nil
	}
	if ref != "" && r.getLocked(ref) == nil {
		if err := r.putLocked(newPulled(ref)); err != nil {
			return err
		}
	}
	delete(r.loose, image)
	r.removeLocked(r.intentFile(image))
	return nil
}

func (r *records) isLooseLocked(image string) bool {
	_, ok := r.loose[image]
	return ok
}

// readLooseLocked reads what an agent before us has left.
func (r *records) readLooseLocked() {
	if r.loose != nil {
		return
	}
	r.loose = map[string]time.Time{}
	dir := filepath.Join(r.dir, "pulling")
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		r.log.Warn("records of pulls under way are not readable", "dir", dir, "err", err)
	}
	for _, e := range entries {
		if !isRecord(e.Name()) {
			continue // not ours, or half written
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
			err = fmt.Errorf("its name is not that of image %q", i.Image)
		}
		if err != nil {
			r.log.Warn("record of a pull under way is not readable and ignored", "file", path, "err", err)
			continue
		}
		r.loose[i.Image] = since
	}
}

// prune drops records that were last written before the given time, of images
// that are not among the present ones.
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
			r.log.Warn("record of a pull is not readable and ignored", "file", path, "err", err)
			continue
		}
		if present[record.ImageRef] || record.LastUpdatedTime.Add(time.Second).After(before) { // it has whole seconds
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
		r.log.Warn("record of a pull under way is not removable", "file", path, "err", err)
	}
}

// Prune drops the records of pulls of images that are gone: of those whose IDs
// are not among present and whose record was last written before the given time,
// which has to be one before the images were listed. Whoever collects unused
// images calls it; without it, records of images that are gone stay, and are
// right again if the image comes back.
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
