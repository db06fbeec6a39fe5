package process

import (
	"context"
	"errors"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// awaitEnd blocks until the supervisor behind the FIFO has exited and returns nil,
// or ctx's error if ctx is done before. It waits in the netpoller, without a
// thread or a timer.
func awaitEnd(ctx context.Context, path string) error {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NONBLOCK, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	stop := context.AfterFunc(ctx, func() { f.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	for {
		var b [1]byte
		switch _, err := f.Read(b[:]); {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			return context.Cause(ctx)
		case err != nil:
			return err
		}
	}
}
