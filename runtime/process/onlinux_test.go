package process_test

import goruntime "runtime"

// linux reports whether there are /proc, subreapers and the whole of 127.0.0.0/8.
const linux = goruntime.GOOS == "linux"
