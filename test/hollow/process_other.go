//go:build !unix

package hollow

import "time"

func processorTime() time.Duration { return 0 }
