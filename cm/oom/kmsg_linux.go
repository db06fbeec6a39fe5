package oom

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// OpenKmsg opens /dev/kmsg after its last record. It requires root or permission to read
// the kernel log.
func OpenKmsg() (io.ReadCloser, error) {
	file, err := os.OpenFile("/dev/kmsg", os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if _, err := file.Seek(0, io.SeekEnd); err != nil {
		return nil, errors.Join(fmt.Errorf("skip old records: %w", err), file.Close())
	}
	return kmsg{file}, nil
}

// kmsg is /dev/kmsg, whose reads the runtime's poller waits for.
type kmsg struct{ *os.File }

// Read reads one record. It returns ErrLost if the kernel has overwritten records.
func (k kmsg) Read(p []byte) (int, error) {
	n, err := k.File.Read(p)
	if errors.Is(err, syscall.EPIPE) {
		return 0, fmt.Errorf("%w: %w", ErrLost, err)
	}
	return n, err
}
