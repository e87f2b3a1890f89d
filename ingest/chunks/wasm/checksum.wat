;; Sums of bytes that tell whether they are others: of each of eight words of 64 bytes their sum, and the sum of those
;; sums so far, in which a word counts by its place. Built into programs.ts by `npm run wasm`.
(module
  ;; The sums, 128 bytes, and behind them the bytes to add.
  (memory (export "memory") 5)

  ;; Adds so many bytes, a multiple of 64.
  (func (export "add") (param $length i32)
    (local $at i32) (local $end i32)
    (local $a v128) (local $b v128) (local $c v128) (local $d v128)
    (local $sumsOfA v128) (local $sumsOfB v128) (local $sumsOfC v128) (local $sumsOfD v128)
    (local.set $a (v128.load offset=0 (i32.const 0)))
    (local.set $b (v128.load offset=16 (i32.const 0)))
    (local.set $c (v128.load offset=32 (i32.const 0)))
    (local.set $d (v128.load offset=48 (i32.const 0)))
    (local.set $sumsOfA (v128.load offset=64 (i32.const 0)))
    (local.set $sumsOfB (v128.load offset=80 (i32.const 0)))
    (local.set $sumsOfC (v128.load offset=96 (i32.const 0)))
    (local.set $sumsOfD (v128.load offset=112 (i32.const 0)))
    (local.set $at (i32.const 128))
    (local.set $end (i32.add (i32.const 128) (local.get $length)))
    (block $done
      (loop $next
        (br_if $done (i32.ge_u (local.get $at) (local.get $end)))
        (local.set $a (i64x2.add (local.get $a) (v128.load offset=0 (local.get $at))))
        (local.set $b (i64x2.add (local.get $b) (v128.load offset=16 (local.get $at))))
        (local.set $c (i64x2.add (local.get $c) (v128.load offset=32 (local.get $at))))
        (local.set $d (i64x2.add (local.get $d) (v128.load offset=48 (local.get $at))))
        (local.set $sumsOfA (i64x2.add (local.get $sumsOfA) (local.get $a)))
        (local.set $sumsOfB (i64x2.add (local.get $sumsOfB) (local.get $b)))
        (local.set $sumsOfC (i64x2.add (local.get $sumsOfC) (local.get $c)))
        (local.set $sumsOfD (i64x2.add (local.get $sumsOfD) (local.get $d)))
        (local.set $at (i32.add (local.get $at) (i32.const 64)))
        (br $next)))
    (v128.store offset=0 (i32.const 0) (local.get $a))
    (v128.store offset=16 (i32.const 0) (local.get $b))
    (v128.store offset=32 (i32.const 0) (local.get $c))
    (v128.store offset=48 (i32.const 0) (local.get $d))
    (v128.store offset=64 (i32.const 0) (local.get $sumsOfA))
    (v128.store offset=80 (i32.const 0) (local.get $sumsOfB))
    (v128.store offset=96 (i32.const 0) (local.get $sumsOfC))
    (v128.store offset=112 (i32.const 0) (local.get $sumsOfD))))
