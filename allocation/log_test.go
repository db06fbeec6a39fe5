package allocation_test

import (
	"io"
	"log/slog"
)

func logTo(w io.Writer) *slog.Logger { return slog.New(slog.NewTextHandler(w, nil)) }
