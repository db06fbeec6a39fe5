package untrusted

import (
	"context"
	"os"
)

func removeTree(ctx context.Context, dir string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return os.RemoveAll(dir)
}
